# Makes the disk, kernel and initrd of a Debian release. Sourced by run.sh.

mirror=http://deb.debian.org/debian
machines=(bullseye bookworm trixie sid)

# A login node has about these. fuse-overlayfs and AppArmor are there to be taken away by the smoke test.
guest_packages=(
    apparmor ca-certificates dbus fuse-overlayfs initramfs-tools libpam-systemd linux-image-cloud-amd64 procps
    python3 python3-venv systemd-sysv
)
declare -A more_packages=([sid]="apptainer squashfuse")

# Runs the disk `tests` when the machine has booted. The second serial port is this program's standard output.
smoke_unit='[Unit]
After=multi-user.target systemd-logind.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "mkdir -p /smoke && mount LABEL=tests /smoke && exec python3 /smoke/smoke.py"
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
ExecStopPost=systemctl poweroff --no-block
[Install]
WantedBy=multi-user.target
'

# make_machine RELEASE DIRECTORY
make_machine() {
    local release=$1 place=$2 tree check packages
    packages="${guest_packages[*]} ${more_packages[$release]:-}"
    check=$(apt-config dump Acquire::Check-Valid-Until) # this machine's setting for mirrors that are deliberately old
    tree=$(mktemp -d)
    # shellcheck disable=SC2016 # the variables are for the hooks
    smoke_unit=$smoke_unit mmdebstrap --quiet --variant=minbase --include="${packages// /,}" ${check:+--aptopt="$check"} \
        --customize-hook='printf %s "$smoke_unit" > "$1/etc/systemd/system/smoke.service"' \
        --customize-hook='ln -s ../smoke.service "$1/etc/systemd/system/multi-user.target.wants/"' \
        --customize-hook='for user in alice bob; do chroot "$1" useradd --create-home --shell /bin/bash $user; done' \
        "$release" "$tree" "$mirror"
    mkdir "$place"
    cp "$tree/vmlinuz" "$tree/initrd.img" "$place"
    mke2fs -q -t ext4 -L root -d "$tree" "$place/disk" 4G
    rm -rf --one-file-system "$tree"
}

# machine_files RELEASE CACHE: prints the directory of disk, vmlinuz and initrd.img, and makes it unless it is there
machine_files() (
    mkdir -p "$2"
    place=$2/$1-$(sha256sum "${BASH_SOURCE[0]}" | head -c 12)
    exec 3>"$2/$1.lock"
    flock 3
    if [ ! -e "$place" ]; then
        rm -rf "$2/$1"-*
        make_machine "$1" "$place.new" >&2
        mv "$place.new" "$place"
    fi
    echo "$place"
)
