# cmake -DBUILD=FOLDER -DWORK=FOLDER -DSOURCE=FOLDER -DCONFIG=NAME -P installed.cmake: installs the build, moves what was
# installed, and sees that its program runs there and that somebody else's program can be built with its libraries.
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(holds text part)
  if(NOT text MATCHES "${part}")
    message(FATAL_ERROR "expected ${part} in\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
foreach(component cli mpi dev)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first --component ${component})
endforeach()
file(RENAME ${WORK}/first ${WORK}/moved)
set(moved ${WORK}/moved)
foreach(file bin/trivium share/man/man1/trivium.1.gz share/man/man1/trivium-plan.1.gz
    share/bash-completion/completions/trivium share/zsh/site-functions/_trivium
    share/fish/vendor_completions.d/trivium.fish share/doc/trivium/LICENSE share/trivium/models/gpt2-124m.json
    share/trivium/stacks/megatron-core.json share/trivium/hardware_profiles/measured/errors.json share/trivium/hardware_profiles/devices
    share/trivium/schemas/plan.json include/trivium/planner/search/search.h)
  if(NOT EXISTS ${moved}/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

set(ENV{HOME} ${WORK}/home)
set(ENV{XDG_DATA_HOME} ${WORK}/home/data)
unset(ENV{TRIVIUM_DATA_DIR})
run(${moved}/bin/trivium doctor)
holds("${out}" "data +yes +${moved}/share/trivium\n")
if(EXISTS ${moved}/lib/trivium/libtrivium_mpi.so)
  holds("${out}" "MPI module +yes +${moved}/lib/trivium/libtrivium_mpi.so\n")
endif()
run(${moved}/bin/trivium plan --model gpt2-124m --cluster dgx-a100-80gb --global-batch 64)
holds("${out}" "gpt2-124m on dgx-a100-80gb")

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/consumer -B ${WORK}/consumer -G Ninja -DCMAKE_BUILD_TYPE=${CONFIG}
  -DCMAKE_PREFIX_PATH=${moved} "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer)
holds("${out}" "TP1 PP1 DP8")
message(STATUS "consumer: ${out}")
