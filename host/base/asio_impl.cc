// SPDX-License-Identifier: Apache-2.0
// The one place where the non-template parts of Asio are compiled
// (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
