# The CPU backend. The hot kernels (variants/) are compiled once per instruction set into a namespace of their own; the
# processor decides at run time which of them is called.
set(cpu_variants v2)
set(cpu_flags_v2 "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND cpu_variants v3 v4)
  set(cpu_flags_v3 -mavx2 -mfma)
  # GCC 12 warns about the deliberately undefined operands of its own AVX-512 intrinsics (GCC bug 105593).
  set(cpu_flags_v4 -mavx2 -mfma -mavx512f -mavx512dq -mavx512vl -mavx512bw -Wno-maybe-uninitialized -Wno-uninitialized)
endif()
# No -ffast-math, and no contraction into fused multiply-adds that the source does not ask for: a result depends on the
# code path alone. sqrt and friends set no errno here, so that loops over them vectorise.
set(cpu_flags -O3 -ffp-contract=off -fno-math-errno)
if(TRIVIUM_SANITIZE)
  # Every access is checked; optimising the checks of Eigen's templates takes longer than running them.
  list(REMOVE_ITEM cpu_flags -O3)
endif()

# What multiplies matrices, and what does not: two files of each instruction set where files are compiled together
# (CMAKE_UNITY_BUILD), as most of the time goes into the templates of a matrix product, which five of them share.
set(cpu_products cpu/variants/attention.cpp cpu/variants/attention_backward.cpp cpu/variants/attention_block.cpp
  cpu/variants/expert_matmul.cpp cpu/variants/matmul.cpp cpu/variants/newton_schulz.cpp)
set(cpu_loops cpu/variants/activation.cpp cpu/variants/latent.cpp cpu/variants/loss.cpp cpu/variants/norm.cpp cpu/variants/optimizer_loops.cpp
  cpu/variants/residual.cpp cpu/variants/rotary.cpp cpu/variants/table.cpp)
set_source_files_properties(${cpu_products} PROPERTIES UNITY_GROUP products)
set_source_files_properties(${cpu_loops} PROPERTIES UNITY_GROUP loops)

foreach(variant IN LISTS cpu_variants)
  set(target trivium_runtime_cpu_${variant})
  add_library(${target} OBJECT ${cpu_products} ${cpu_loops})
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${trivium_unity}" UNITY_BUILD_MODE GROUP)
  trivium_common(${target})
  target_compile_options(${target} PRIVATE ${cpu_flags} ${cpu_flags_${variant}})
  target_compile_definitions(${target} PRIVATE TRIVIUM_CPU_VARIANT=${variant})
  target_link_libraries(${target} PRIVATE Eigen3::Eigen)
  list(APPEND runtime_sources $<TARGET_OBJECTS:${target}>)
endforeach()

list(APPEND runtime_sources
  cpu/backend.cpp cpu/clear.cpp cpu/compression.cpp cpu/context.cpp cpu/dispatch.cpp cpu/embedding.cpp cpu/mixture.cpp cpu/muon.cpp cpu/optimizer.cpp cpu/quantize.cpp cpu/widened.cpp)
set_source_files_properties(cpu/context.cpp cpu/embedding.cpp cpu/mixture.cpp cpu/muon.cpp cpu/optimizer.cpp cpu/quantize.cpp cpu/widened.cpp
  PROPERTIES COMPILE_OPTIONS "${cpu_flags}")
