# Makes the disk, kernel and initrd of a Debian release. Sourced by run.sh.

mirror=http://deb.debian.org/debian
machines=(bullseye bookworm trixie sid bookworm-arm64) # releases, for x86_64 unless the name ends in -arm64

# machine_architecture NAME: prints the architecture as the kernel, QEMU and bundles call it
machine_architecture() { case $1 in *-arm64) echo aarch64 ;; *) echo x86_64 ;; esac; }

# A login node has about these. fuse-overlayfs and AppArmor are there to be taken away by the smoke test.
guest_packages=(
    apparmor ca-certificates dbus fuse-overlayfs initramfs-tools libpam-systemd procps python3 python3-venv
    systemd-sysv
)
declare -A more_packages=([sid]="apptainer squashfuse")

# Runs the disk `tests` when the machine has booted. QEMU's standard output is the port for the result.
smoke_unit='[Unit]
After=multi-user.target systemd-logind.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "mkdir -p /smoke && mount LABEL=tests /smoke && exec python3 /smoke/smoke.py"
StandardOutput=file:/dev/virtio-ports/result
ExecStopPost=systemctl poweroff --no-block
[Install]
WantedBy=multi-user.target
'

# Lets this kernel run programs for aarch64, such as the scripts of packages, in QEMU's emulator.
emulate_aarch64() {
    local kernel=/proc/sys/fs/binfmt_misc
    [ -e $kernel/register ] || mount -t binfmt_misc binfmt_misc $kernel
    [ -e $kernel/qemu-aarch64 ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >$kernel/register
}

# make_machine NAME DIRECTORY
make_machine() {
    local release=${1%-arm64} place=$2 architecture=amd64 tree packages
    if [ "$release" != "$1" ]; then
        architecture=arm64
        emulate_aarch64
    fi
    packages="${guest_packages[*]} linux-image-cloud-$architecture ${more_packages[$1]:-}"
    tree=$(mktemp -d)
    # shellcheck disable=SC2016 # the variables are for the hooks
    smoke_unit=$smoke_unit make_debian_root --variant=minbase --architectures="$architecture" --include="${packages// /,}" \
        --customize-hook='printf %s "$smoke_unit" > "$1/etc/systemd/system/smoke.service"' \
        --customize-hook='ln -s ../smoke.service "$1/etc/systemd/system/multi-user.target.wants/"' \
        --customize-hook='for user in alice bob; do chroot "$1" useradd --create-home --shell /bin/bash $user; done' \
        "$release" "$tree" "$mirror"
    mkdir "$place"
    cp "$tree/vmlinuz" "$tree/initrd.img" "$place"
    mke2fs -q -t ext4 -L root -d "$tree" "$place/disk" 4G
    rm -rf --one-file-system "$tree"
}

# machine_files NAME CACHE: prints the directory of disk, vmlinuz and initrd.img, and makes it unless it is there
machine_files() (
    set -e # $(...) does not inherit it
    mkdir -p "$2"
    place=$2/$1-$(sha256sum "${BASH_SOURCE[0]}" | head -c 12)
    exec 3>"$2/$1.lock"
    flock 3
    if [ ! -e "$place" ]; then
        rm -rf "$2/$1"-????????????{,.new} # not bookworm-arm64 with bookworm
        make_machine "$1" "$place.new" >&2
        mv "$place.new" "$place"
    fi
    echo "$place"
)
