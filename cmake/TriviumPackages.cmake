# What `cpack` makes of an installed tree: Debian packages, a component each, and an archive of the command line alone.
set(CPACK_PACKAGE_NAME trivium)
set(CPACK_PACKAGE_VENDOR "Trivium project")
set(CPACK_PACKAGE_CONTACT "Trivium project <trivium@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # every package has its own
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_GROUPING IGNORE)

# The archive: unpacked anywhere, bin/trivium runs.
set(CPACK_PACKAGE_FILE_NAME trivium-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_CLI_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
if(TRIVIUM_STATIC)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_COMPONENTS_ALL cli)
else()
  set(CPACK_GENERATOR DEB)
  set(CPACK_COMPONENTS_ALL cli dev)
  if(TARGET trivium_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
  endif()
  if(TARGET trivium-gui)
    list(APPEND CPACK_COMPONENTS_ALL gui)
  endif()
endif()

# The packages. What they need of the distribution is read from the programs.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_CLI_PACKAGE_NAME trivium)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS "trivium-gui, trivium-mpi")
set(CPACK_DEBIAN_CLI_DESCRIPTION "planner, simulator and runtime for the training of GPT models
The command line: finds the fastest way to split a training over a cluster,
proves it on an event simulator, trains it on this machine, and compares
predictions with what was measured.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME trivium-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "trivium (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_MPI_DESCRIPTION "processes as ranks for Trivium
The module with which trivium run trains with a process a rank, by Open MPI.")

set(CPACK_DEBIAN_GUI_PACKAGE_NAME trivium-gui)
set(CPACK_DEBIAN_GUI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_GUI_PACKAGE_DEPENDS "trivium (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_GUI_DESCRIPTION "desktop program of Trivium, the planner of GPT training
Plans how a training is split over a cluster by looking at it: timeline,
memory, cluster, comparison of plans, runs and their validation.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtrivium-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "trivium (= ${PROJECT_VERSION}), nlohmann-json3-dev (>= 3.11), libfmt-dev (>= 9), libeigen3-dev (>= 3.4), libsqlite3-dev, zlib1g-dev, libyaml-cpp-dev (>= 0.7)")
set(CPACK_DEBIAN_DEV_DESCRIPTION "libraries and headers of Trivium, the planner of GPT training
Planner, simulator and their parts as static libraries, with a package for
CMake: find_package(Trivium).")

# Debian has the licence of every package in a file of this name.
if(TRIVIUM_PACKAGED AND NOT TRIVIUM_STATIC)
  foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} upper)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/copyright COMPONENT ${component}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  endforeach()
endif()
include(CPack)
