# SPDX-License-Identifier: Apache-2.0
outrigger_library(outrigger_operator_kube_http
  SRCS api_call.cc api_config.cc credentials.cc curl_loop.cc fail_point.cc http_api.cc request_path.cc watch_framer.cc
  DEPS outrigger_operator_kube_api Boost::json CURL::libcurl yaml-cpp)
