# The Debian packages that the project needs, and a function that installs them. Sourced by scripts.

build_packages=(
    ca-certificates cmake g++ git ninja-build pkg-config
    libbz2-dev libc-ares-dev libcli11-dev liblz4-dev liblzma-dev libnghttp2-dev libre2-dev libsquashfs-dev libssl-dev
    libtomlplusplus-dev libyaml-cpp-dev libzstd-dev nettle-dev nlohmann-json3-dev python3 zlib1g-dev zstd
)
# What else a machine needs on which users build environments.
run_packages=(python3-venv)
test_packages=(
    apache2-utils attr bubblewrap busybox-static ccache chromium chromium-driver clang-19 clang-format dash
    docker-registry fish fonts-dejavu-core fuse-overlayfs fuse3 g++-aarch64-linux-gnu gcc graphviz groff-base iproute2 ksh libarchive-tools libclang-rt-19-dev
    libfuse3-dev libfuzzer-19-dev libgtest-dev libpmix-dev lmod man-db mksh mmdebstrap mpich munge openmpi-bin openssh-client
    openssh-server python3-pip python3-pytest python3-selenium python3-zstandard qemu-user-static skopeo slurm-client
    slurm-wlm-basic-plugins slurmctld slurmd squashfs-tools squashfuse strace umoci util-linux zsh
)
# For tests in virtual machines (tests/machines).
machine_packages=(
    arch-test e2fsprogs g++-aarch64-linux-gnu gcc mmdebstrap python3-pip python3-zstandard qemu-system-arm qemu-system-x86
    qemu-user-static zstd
)

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Runs mmdebstrap with this machine's setting for mirrors that are deliberately old.
make_debian_root() {
    local check
    check=$(apt-config dump Acquire::Check-Valid-Until)
    mmdebstrap --quiet ${check:+--aptopt="$check"} "$@"
}

# Installs missing packages; prints nothing if there are none.
have_packages() {
    local missing=() name
    for name in "$@"; do
        dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -q '^installed$' || missing+=("$name")
    done
    [ ${#missing[@]} = 0 ] && return
    echo "Installing ${missing[*]}"
    as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
