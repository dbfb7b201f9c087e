# Looks for what the CUDA backend needs and says what it found.
#   TRIVIUM_HAS_CUDA   ON where a CUDA compiler, its toolkit (12 or newer) and cuBLASLt are there
#   trivium_cublaslt   that library, then
#   CUPTI_INCLUDE_DIR  where cupti.h lies, if it is there: its library is opened when it is asked for
#   NCCL::nccl         the NCCL library, where that is there too: without it the backend runs plans of one rank
# Include from the root list only.
set(trivium_cuda_missing "")
if(NOT TRIVIUM_CUDA OR NOT TRIVIUM_PROGRAMS)
  set(trivium_cuda_missing "TRIVIUM_CUDA or TRIVIUM_PROGRAMS is OFF")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(trivium_cuda_missing "no CUDA compiler (set CMAKE_CUDA_COMPILER or put nvcc on the PATH)")
  else()
    find_package(CUDAToolkit 12 QUIET)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_HOME} ENV NCCL_HOME PATH_SUFFIXES include)
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ${NCCL_HOME} ENV NCCL_HOME
                 PATH_SUFFIXES lib lib64)
    # Some toolkits are a compiler and its runtime alone; the libraries may be there as Python packages.
    find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUBLAS_HOME} ENV CUBLAS_HOME
              PATH_SUFFIXES include)
    find_library(CUBLASLT_LIBRARY NAMES cublasLt libcublasLt.so.13 libcublasLt.so.12
                 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUBLAS_HOME} ENV CUBLAS_HOME PATH_SUFFIXES lib lib64)
    find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT} ${CUPTI_HOME}
              ENV CUPTI_HOME ENV CUDA_HOME PATH_SUFFIXES include extras/CUPTI/include)
    mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY CUBLASLT_INCLUDE_DIR CUBLASLT_LIBRARY CUPTI_INCLUDE_DIR)
    if(NOT CUDAToolkit_FOUND)
      set(trivium_cuda_missing "compiler ${CMAKE_CUDA_COMPILER}, but no CUDA toolkit 12 or newer")
    elseif(NOT CUBLASLT_INCLUDE_DIR OR NOT CUBLASLT_LIBRARY)
      set(trivium_cuda_missing "compiler ${CMAKE_CUDA_COMPILER}, but no cuBLASLt (set CUBLAS_HOME)")
    endif()
  endif()
endif()

if(trivium_cuda_missing)
  if(TRIVIUM_REQUIRE_CUDA)
    message(FATAL_ERROR "The CUDA backend was required and cannot be built: ${trivium_cuda_missing}")
  endif()
  set(TRIVIUM_HAS_CUDA OFF CACHE INTERNAL "The CUDA backend can be built")
  message(STATUS "CUDA backend: left out, ${trivium_cuda_missing}")
  return()
endif()

set(TRIVIUM_HAS_CUDA ON CACHE INTERNAL "The CUDA backend can be built")
add_library(trivium_cublaslt UNKNOWN IMPORTED GLOBAL)
set_target_properties(trivium_cublaslt PROPERTIES IMPORTED_LOCATION "${CUBLASLT_LIBRARY}"
                                                  INTERFACE_INCLUDE_DIRECTORIES "${CUBLASLT_INCLUDE_DIR}")
set(trivium_cuda_found "toolkit ${CUDAToolkit_VERSION} (${CMAKE_CUDA_COMPILER})")
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  add_library(NCCL::nccl UNKNOWN IMPORTED GLOBAL)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
  string(APPEND trivium_cuda_found ", NCCL ${NCCL_LIBRARY}")
else()
  string(APPEND trivium_cuda_found ", no NCCL (set NCCL_HOME): plans of one rank alone")
endif()
if(NOT CUPTI_INCLUDE_DIR)
  string(APPEND trivium_cuda_found ", no cupti.h: ops are timed by events alone")
endif()

# Ampere and Hopper as machine code, anything newer through PTX. Must stand before the language is enabled.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
endif()
enable_language(CUDA)
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
# CMake 3.25 knows no C++20 flag for nvcc and would fall back to CMAKE_CXX_STANDARD: a file that needs C++20 asks for
# it itself (CUDA_STANDARD_REQUIRED OFF and -std=c++20).
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
message(STATUS "CUDA backend: ${trivium_cuda_found}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
