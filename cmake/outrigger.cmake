# SPDX-License-Identifier: Apache-2.0
# What every room's CMakeLists.txt uses: outrigger_library, outrigger_binary, outrigger_test, outrigger_fuzzer.

option(OUTRIGGER_PCH "Precompile the headers that most files use" ON)
option(OUTRIGGER_COVERAGE "Instrument for llvm-cov" OFF)
set(OUTRIGGER_SANITIZE "" CACHE STRING "empty, address (with undefined and fuzzer-no-link) or thread")
set(OUTRIGGER_TEST_SUFFIX "" CACHE STRING "Put behind each test's name, so that one ctest run can hold several build trees")

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "Outrigger needs clang 19 or newer (docs/adr/0001-compiler.md); got "
                      "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. Use a preset: cmake --preset dev")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Executables are compiled like libraries (-fPIC, not -fPIE): a precompiled header serves only one of the two.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)

find_program(CCACHE ccache)
if(CCACHE)
  # The precompiled header is built without a timestamp in it, so that ccache may share it between build trees.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)

# Address and undefined-behaviour checks multiply what the optimizer has to work on: -O1 takes 2.5 times as long to build
# as -O0 and saves less when the tests run.
set(OUTRIGGER_DEBUG_LEVEL -O1)
if(OUTRIGGER_SANITIZE STREQUAL "address")
  set(OUTRIGGER_DEBUG_LEVEL -O0)
endif()

add_library(outrigger_options INTERFACE)
target_include_directories(outrigger_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(outrigger_options INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED SPDLOG_COMPILED_LIB
  OUTRIGGER_VERSION="${PROJECT_VERSION}")
target_compile_options(outrigger_options INTERFACE -pthread -Wall -Wextra -Werror -Wthread-safety -Wno-missing-field-initializers
  $<$<CONFIG:Debug>:${OUTRIGGER_DEBUG_LEVEL}> -gline-tables-only "SHELL:-Xclang -fno-pch-timestamp")
target_link_options(outrigger_options INTERFACE -fuse-ld=mold)
if(OUTRIGGER_SANITIZE STREQUAL "address")
  target_compile_options(outrigger_options INTERFACE -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(outrigger_options INTERFACE -fsanitize=address,undefined)
elseif(OUTRIGGER_SANITIZE STREQUAL "thread")
  target_compile_options(outrigger_options INTERFACE -fsanitize=thread)
  target_link_options(outrigger_options INTERFACE -fsanitize=thread)
endif()
if(OUTRIGGER_COVERAGE)
  target_compile_options(outrigger_options INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(outrigger_options INTERFACE -fprofile-instr-generate)
endif()

# One precompiled header for all: Asio's coroutines, Abseil's Status and time, Boost.JSON, the standard library.
if(OUTRIGGER_PCH)
  add_library(outrigger_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_link_libraries(outrigger_pch PUBLIC outrigger_options Boost::headers)
  target_precompile_headers(outrigger_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
endif()

function(_outrigger_common target)
  target_link_libraries(${target} PUBLIC outrigger_options Boost::headers)
  if(OUTRIGGER_PCH)
    target_precompile_headers(${target} REUSE_FROM outrigger_pch)
  endif()
endfunction()

# outrigger_library(name SRCS a.cc … DEPS lib …): a static library of one room.
function(outrigger_library name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SRCS})
  _outrigger_common(${name})
  target_link_libraries(${name} PUBLIC ${A_DEPS})
endfunction()

# outrigger_binary(name SRCS … DEPS …): an executable in bin/ of the build tree.
function(outrigger_binary name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${A_SRCS})
  _outrigger_common(${name})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# What tools/test.sh builds of a tree: every unit test, every test that runs under ThreadSanitizer, every fuzz target.
add_custom_target(unit_tests)
add_custom_target(tsan_tests)
add_custom_target(fuzzers)

# A sanitized tree has a part of the tests, since the rest would cost more than it finds: the address tree those labelled
# unit, the thread tree those labelled tsan. Programs of the others exist there as targets but are built by name only.
function(_outrigger_runs_here labels result)
  set(wanted "")
  if(OUTRIGGER_SANITIZE STREQUAL "address")
    set(wanted unit)
  elseif(OUTRIGGER_SANITIZE STREQUAL "thread")
    set(wanted tsan)
  endif()
  if(wanted STREQUAL "" OR wanted IN_LIST labels)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Protobuf, gRPC and Abseil of Debian are not instrumented. A std::vector or std::string that grows on their side of a
# call and shrinks on ours carries no annotations of its unused part, which container-overflow then reports; and the
# thread sanitizer cannot see how they synchronise, so it looks at our modules only.
find_program(LLVM_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer PATHS /usr/lib/llvm-19/bin REQUIRED)
set(OUTRIGGER_TEST_ENVIRONMENT
  "OUTRIGGER_BIN_DIR=${CMAKE_BINARY_DIR}/bin" "OUTRIGGER_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "OUTRIGGER_SANITIZE=${OUTRIGGER_SANITIZE}"
  "ASAN_OPTIONS=detect_container_overflow=0:external_symbolizer_path=${LLVM_SYMBOLIZER}"
  "UBSAN_OPTIONS=print_stacktrace=1:external_symbolizer_path=${LLVM_SYMBOLIZER}"
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:external_symbolizer_path=${LLVM_SYMBOLIZER}")

# outrigger_test(name SRCS … DEPS … LABELS unit|integration|… [TIMEOUT s] [COST s] [BINARIES target …] [SERIAL]): a
# GoogleTest program, run as ONE ctest test. BINARIES are built before it and found in OUTRIGGER_BIN_DIR. LABELS
# "unit;tsan" runs it in all three trees of tools/test.sh; OUTRIGGER_SANITIZE in the environment tells it in which (empty,
# address, thread). COST is about what it takes: the longest start first, so that none is left alone at the end.
function(outrigger_test name)
  cmake_parse_arguments(A "SERIAL" "TIMEOUT;COST" "SRCS;DEPS;LABELS;BINARIES" ${ARGN})
  _outrigger_runs_here("${A_LABELS}" runs_here)
  add_executable(${name} ${A_SRCS})
  _outrigger_common(${name})
  target_link_libraries(${name} PRIVATE ${A_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(A_BINARIES)
    add_dependencies(${name} ${A_BINARIES})
  endif()
  if(NOT runs_here)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  foreach(label unit tsan)
    if(label IN_LIST A_LABELS)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  set(test ${name}${OUTRIGGER_TEST_SUFFIX})
  add_test(NAME ${test} COMMAND ${name})
  set_tests_properties(${test} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} ENVIRONMENT "${OUTRIGGER_TEST_ENVIRONMENT}")
  if("outrigger_tests_cluster" IN_LIST A_DEPS)
    set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED cluster_programs)  # tests/cluster/CMakeLists.txt
  endif()
  if(A_COST)
    set_tests_properties(${test} PROPERTIES COST ${A_COST})
  endif()
  if(A_SERIAL)
    set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# outrigger_script_test(name COMMAND … LABELS … [TIMEOUT s] [FIXTURE name]): a test that is a script, run in the trees
# that its labels name. FIXTURE: it sets up what tests with that fixture need.
function(outrigger_script_test name)
  cmake_parse_arguments(A "" "TIMEOUT;FIXTURE" "COMMAND;LABELS" ${ARGN})
  _outrigger_runs_here("${A_LABELS}" runs_here)
  if(NOT runs_here)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  set(test ${name}${OUTRIGGER_TEST_SUFFIX})
  add_test(NAME ${test} COMMAND ${A_COMMAND})
  set_tests_properties(${test} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} ENVIRONMENT "${OUTRIGGER_TEST_ENVIRONMENT}")
  if(A_FIXTURE)
    set_tests_properties(${test} PROPERTIES FIXTURES_SETUP ${A_FIXTURE})
  endif()
endfunction()

# outrigger_fuzzer(name SRCS … DEPS … CORPUS dir): a libFuzzer target; ctest runs 10,000 cases of it in the asan build only.
function(outrigger_fuzzer name)
  cmake_parse_arguments(A "" "CORPUS" "SRCS;DEPS" ${ARGN})
  if(NOT OUTRIGGER_SANITIZE STREQUAL "address")
    if(NOT OUTRIGGER_PCH)  # the tidy tree only wants to know how the files are compiled
      add_library(${name} OBJECT EXCLUDE_FROM_ALL ${A_SRCS})
      target_link_libraries(${name} PRIVATE outrigger_options Boost::headers ${A_DEPS})
    endif()
    return()
  endif()
  add_executable(${name} ${A_SRCS})
  _outrigger_common(${name})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
  set(test ${name}${OUTRIGGER_TEST_SUFFIX})
  add_test(NAME ${test} COMMAND ${CMAKE_SOURCE_DIR}/tools/fuzz_smoke.sh $<TARGET_FILE:${name}> ${A_CORPUS})
  set_tests_properties(${test} PROPERTIES LABELS fuzz-smoke TIMEOUT 120 ENVIRONMENT "${OUTRIGGER_TEST_ENVIRONMENT}")
endfunction()
