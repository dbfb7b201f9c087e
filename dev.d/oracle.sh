# Other programs as the reference: PyTorch, transformers, trainers' own parsers. Part of ./dev.

# PyTorch's wheels bring their own CUDA libraries: about 6 GB in build/oracle. Nothing of it is needed by anything else.
run_oracle() {
  if [ "${1:-}" = launch ]; then run_oracle_launch; fi
  if [ "${1:-}" = exchange ]; then run_oracle_exchange; fi
  ensure "${test_packages[@]}" python3-venv -- ccache
  [ -x build/oracle/venv/bin/pip ] || python3 -m venv build/oracle/venv
  build/oracle/venv/bin/pip install -q torch transformers safetensors numpy >&2
  configure dev
  build dev --target trivium-oracle
  rm -rf build/oracle/cases
  build/oracle/venv/bin/python tests/oracle/make_cases.py build/oracle/cases full >&2
  exec build/dev/bin/trivium-oracle build/oracle/cases
}

# PEFT's adapters in trivium and trivium's in PEFT, files of multi-token prediction in transformers, and weights in 8 and 4
# bits as transformers reads them.
run_oracle_exchange() {
  ensure "${test_packages[@]}" python3-venv -- ccache
  [ -x build/oracle/venv/bin/pip ] || python3 -m venv build/oracle/venv
  build/oracle/venv/bin/pip install -q torch transformers safetensors numpy peft >&2
  configure dev
  build dev --target trivium
  build/oracle/venv/bin/python tests/oracle/adapters.py build/dev/bin/trivium
  build/oracle/venv/bin/python tests/oracle/modules.py build/dev/bin/trivium
  exec build/oracle/venv/bin/python tests/oracle/quantized.py build/dev/bin/trivium
}

# Files of `trivium export`, read by the trainers' own parsers; none of these packages needs a GPU for that.
run_oracle_launch() {
  ensure "${test_packages[@]}" python3-venv -- ccache
  [ -x build/oracle/launch/bin/pip ] || python3 -m venv build/oracle/launch
  build/oracle/launch/bin/pip install -q torch==2.15.0 torchtitan==0.2.2 megatron-core==0.16.1 deepspeed==0.19.8 \
    accelerate==1.15.0 transformers==5.23.0 numpy >&2
  configure dev
  build dev --target trivium
  exec build/oracle/launch/bin/python tests/oracle/launch_files.py build/dev/bin/trivium
}

# Somebody else's trainer: its traces against our simulation of what they tell of the job.
run_foreign() {
  ensure "${build_packages[@]}" python3-venv
  [ -x build/foreign/venv/bin/pip ] || python3 -m venv build/foreign/venv
  build/foreign/venv/bin/pip install -q torch numpy >&2
  configure release -DBUILD_TESTING=OFF -DTRIVIUM_CUDA=OFF -DTRIVIUM_GUI=OFF
  build release --target trivium
  exec build/foreign/venv/bin/python tests/foreign/benchmark.py build/release/bin/trivium build/foreign/jobs "$@"
}

# CUDA 13 no longer supports V100s. The wheels hold the assembler, headers and libdevice; clang reads the source.
run_cuda12() {
  ensure python3-venv clang-19
  [ -x build/cuda12/venv/bin/pip ] || python3 -m venv build/cuda12/venv
  build/cuda12/venv/bin/pip install -q --no-deps nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79 >&2
  local part
  rm -rf build/cuda12/toolkit
  mkdir -p build/cuda12/toolkit
  for part in "$top"/build/cuda12/venv/lib/python3*/site-packages/nvidia/cuda_{runtime,nvcc}; do
    cp -rs "$part/." build/cuda12/toolkit/
  done
  say "dev: the toolkit is build/cuda12/toolkit; ./dev test compiles every kernel for sm_70 with it"
}
