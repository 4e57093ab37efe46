module outrigger.dev/tests/cluster/kedacrds

go 1.26.0

// Only its folder config/crd/bases is read; nothing of it is built here.
require github.com/kedacore/keda/v2 v2.21.0
