# What every target of the project has in common: language standard, warnings, sanitizers, include root.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "How programs are compiled" FORCE)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The compiler's own collector of garbage takes a tenth of its time at the heap that it starts with: let it begin at
    # 1 GiB, which adds a quarter of a GiB to what a large source takes.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=300 --param ggc-min-heapsize=1048576>")
  endif()
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # ccache keeps objects that read a precompiled header where it is told that macros of the header may be believed.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  endif()
endif()

function(trivium_common target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  if(trivium_warnings_are_errors)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TRIVIUM_SANITIZE)
    string(REPLACE "," ";" parts "${TRIVIUM_SANITIZE}")
    foreach(part IN LISTS parts)
      target_compile_options(${target} PUBLIC -fsanitize=${part} -fno-omit-frame-pointer)
      target_link_options(${target} PUBLIC -fsanitize=${part})
    endforeach()
  endif()
endfunction()

# trivium_library(NAME SOURCES… DEPENDS…): the library of one folder, target trivium_NAME, alias Trivium::NAME.
# With CMAKE_UNITY_BUILD sixteen files at a time share the time that what they include takes. Presets choose; others
# compile each file alone, which shows that it includes what it needs. Files with compile options of their own stay alone.
function(trivium_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(trivium_${name} STATIC ${arg_SOURCES})
  add_library(Trivium::${name} ALIAS trivium_${name})
  trivium_common(trivium_${name})
  set_target_properties(trivium_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD "${trivium_unity}"
    UNITY_BUILD_BATCH_SIZE 16)
  target_link_libraries(trivium_${name} PUBLIC ${arg_DEPENDS})
endfunction()

# trivium_test_headers(NAME DEPENDS… HEADERS…): a program that holds what many tests include, read once for all of them.
# Those that use it link what it links, whose definitions are in the headers.
function(trivium_test_headers name)
  cmake_parse_arguments(arg "" "" "DEPENDS;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "int main() {}\n")
  add_executable(${name} ${PROJECT_BINARY_DIR}/test_headers.cpp)
  trivium_common(${name})
  target_compile_options(${name} PRIVATE -O0 $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS}
    <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <fmt/format.h>
    <algorithm> <array> <cmath> <filesystem> <fstream> <functional> <map> <numeric> <random> <ranges> <set> <sstream>
    <string> <thread> <vector>)
endfunction()

# trivium_use_test_headers(NAME HOLDER): for a program that is compiled with -O0, as the holder is. Without
# CMAKE_UNITY_BUILD every source shows that it includes what it needs.
function(trivium_use_test_headers name holder)
  if(trivium_unity)
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
    target_link_libraries(${name} PRIVATE nlohmann_json::nlohmann_json fmt::fmt)
    target_precompile_headers(${name} REUSE_FROM ${holder})
  endif()
endfunction()

# The same for the sources of a test program: names in their anonymous namespaces must differ within the eight.
function(trivium_unity_tests name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD "${trivium_unity}" UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# trivium_test(NAME SOURCES… READ_THE_TREE… DEPENDS… LABELS… PREFIX…): one GoogleTest executable, its cases known to
# ctest, by names that begin with the prefix.
# READ_THE_TREE: those of its sources that open files of the checkout, under TRIVIUM_SOURCE_DIR.
function(trivium_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;READ_THE_TREE;DEPENDS;LABELS;PREFIX" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  trivium_common(${name})
  trivium_use_test_headers(${name} trivium_test_headers)
  trivium_unity_tests(${name})
  target_compile_options(${name} PRIVATE -O0)  # the time goes into compiling tests, not into running their own code
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest_main GTest::gmock)
  # Only these know where the tree lies: every other object is the same in any checkout, and compiled once for all of them.
  set_source_files_properties(${arg_READ_THE_TREE} PROPERTIES
    COMPILE_DEFINITIONS TRIVIUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(timeout 600)
  if(TRIVIUM_SANITIZE)
    set(timeout 1800)  # sanitizers slow kernels down about thirtyfold
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${arg_PREFIX}" DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout})
endfunction()
