// SPDX-License-Identifier: Apache-2.0
// The one place where the non-template parts of Beast are compiled
// (BOOST_BEAST_SEPARATE_COMPILATION).
#include <boost/beast/src.hpp>
