#!/usr/bin/env bash
# On a bare Debian 12: installs what is needed, builds containerize, creates an environment from a requirements file, and
# runs Python from it.  Usage: examples/quickstart.sh [PREFIX OF THE ENVIRONMENT]
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-$source_dir/build/quickstart-env}
source "$source_dir/tests/lib/packages.sh"

have_packages "${build_packages[@]}" "${run_packages[@]}"

cd "$source_dir"
cmake --preset release -DCONTAINERIZE_TESTS=OFF -B build/quickstart >/dev/null
cmake --build build/quickstart
containerize=$source_dir/build/quickstart/bin/containerize

"$containerize" doctor
"$containerize" new --force --prefix "$prefix" examples/requirements.txt

export PATH="$prefix/bin:$PATH"
python -c 'import numpy, sys; print("numpy", numpy.__version__, "by", sys.executable)'
pygmentize -V
