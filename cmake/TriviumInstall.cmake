# What `cmake --install` puts where, by component: cli (the command line, its data and manuals), mpi and cuda (modules it
# opens), gui, dev (libraries, headers, find_package(Trivium)). Everything finds its data from where it lies itself, so
# that an installed tree may be moved.
include(CMakePackageConfigHelpers)
set(TRIVIUM_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where the completion for zsh goes")
set(TRIVIUM_DATA ${CMAKE_INSTALL_DATADIR}/trivium)
set(trivium_libraries base models hardware_profiles program simulator planner calibration report)

# Data.
foreach(folder models hardware_profiles stacks schemas)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${TRIVIUM_DATA}/${folder} COMPONENT cli
    FILES_MATCHING PATTERN "*.json")
endforeach()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT cli)

if(TARGET trivium)
  install(TARGETS trivium RUNTIME COMPONENT cli)
  # Manuals and completions say what the program itself says of its options.
  set(manuals ${PROJECT_BINARY_DIR}/manuals)
  find_program(GZIP_PROGRAM gzip)
  set(pack "")
  if(GZIP_PROGRAM)
    set(pack COMMAND sh -c "${GZIP_PROGRAM} -9nf '${manuals}'/*.1")
  endif()
  set(program ${CMAKE_COMMAND} -E env TRIVIUM_DATA_DIR=${PROJECT_SOURCE_DIR} $<TARGET_FILE:trivium>)
  add_custom_command(OUTPUT ${manuals}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manuals}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manuals}
    COMMAND ${program} man --folder ${manuals}
    ${pack}
    COMMAND ${program} completion bash > ${manuals}/bash
    COMMAND ${program} completion zsh > ${manuals}/zsh
    COMMAND ${program} completion fish > ${manuals}/fish
    COMMAND ${CMAKE_COMMAND} -E touch ${manuals}/made
    DEPENDS trivium COMMENT "Manuals and completions" VERBATIM)
  add_custom_target(trivium_manuals ALL DEPENDS ${manuals}/made)
  install(DIRECTORY ${manuals}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cli FILES_MATCHING PATTERN "*.1" PATTERN "*.1.gz")
  install(FILES ${manuals}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trivium COMPONENT cli)
  install(FILES ${manuals}/zsh DESTINATION ${TRIVIUM_ZSH_COMPLETIONS} RENAME _trivium COMPONENT cli)
  install(FILES ${manuals}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME trivium.fish COMPONENT cli)
endif()

# Modules of other libraries lie where the program looks for them, whatever the libraries' own folder is called.
if(TARGET trivium_mpi)
  install(TARGETS trivium_mpi trivium_loopback LIBRARY DESTINATION lib/trivium COMPONENT mpi)
endif()
if(TARGET trivium_cuda)
  install(TARGETS trivium_cuda LIBRARY DESTINATION lib/trivium COMPONENT cuda)
endif()

if(TARGET trivium-gui)
  set(desktop ${PROJECT_SOURCE_DIR}/gui/desktop)
  install(TARGETS trivium-gui RUNTIME COMPONENT gui)
  install(FILES ${desktop}/trivium.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications COMPONENT gui)
  install(FILES ${desktop}/trivium.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps COMPONENT gui)
  install(FILES ${desktop}/trivium.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages COMPONENT gui)
endif()

# Libraries.
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/Trivium)
foreach(library IN LISTS trivium_libraries)
  install(TARGETS trivium_${library} EXPORT TriviumTargets
    ARCHIVE COMPONENT dev INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trivium)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${library}/*.h)
  foreach(header IN LISTS headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trivium/${folder} COMPONENT dev)
  endforeach()
endforeach()
if(NOT TRIVIUM_STATIC)  # which takes fmt's headers alone
  install(EXPORT TriviumTargets NAMESPACE Trivium:: DESTINATION ${config} COMPONENT dev)
  configure_package_config_file(cmake/TriviumConfig.cmake.in ${PROJECT_BINARY_DIR}/TriviumConfig.cmake
    INSTALL_DESTINATION ${config} PATH_VARS TRIVIUM_DATA)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/TriviumConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/TriviumConfig.cmake ${PROJECT_BINARY_DIR}/TriviumConfigVersion.cmake
    DESTINATION ${config} COMPONENT dev)
endif()
