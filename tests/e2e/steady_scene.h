// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/cluster/control_plane.h"

namespace outrigger::tests {

// 50 idle, 10 active and 5 failing ScaledObjects in the namespace "steady", of which nothing
// changes: then nothing is written in a minute but the Lease, and with SubjectAccessReviews one
// user is asked about once in ten seconds. Nor is anything written by a reconcile that finds
// nothing to do, nor by another replica that takes over and reconciles all of them. `plane` has the
// files of deploy/. Fails the test that runs. Takes about 100 s.
//
// `crd_prunes`: the CRDs are KEDA's, which do not keep all fields of our status. Then each of these
// fields is reported once, and a new leader finds them out with one patch, which changes nothing.
struct SteadyOptions {
  bool crd_prunes = false;
};
void NothingIsWrittenWhenNothingChanges(ControlPlane& plane, SteadyOptions options = {});

}  // namespace outrigger::tests
