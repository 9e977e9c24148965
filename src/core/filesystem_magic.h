// Filesystem types by the magic number that statfs() returns. Header-only, for launchers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace containerize {

struct FilesystemMagic {
    std::uint32_t number;
    std::string_view type;
};

// From linux/magic.h; for those outside the kernel tree (lustre, gpfs, beegfs, panfs, wekafs), from their own
// sources.
inline constexpr std::array filesystem_magics = {
    FilesystemMagic{0x0BD00BD0, "lustre"},   FilesystemMagic{0x47504653, "gpfs"},
    FilesystemMagic{0x19830326, "beegfs"},   FilesystemMagic{0x00006969, "nfs"},
    FilesystemMagic{0xFF534D42, "cifs"},     FilesystemMagic{0xFE534D42, "smb2"},
    FilesystemMagic{0x00C36400, "ceph"},     FilesystemMagic{0x5346414F, "afs"},
    FilesystemMagic{0x6B414653, "afs"},      FilesystemMagic{0xAAD7AAEA, "panfs"},
    FilesystemMagic{0x18031977, "wekafs"},   FilesystemMagic{0x01021997, "9p"},
    FilesystemMagic{0x20030528, "orangefs"}, FilesystemMagic{0x0000EF53, "ext4"},
    FilesystemMagic{0x58465342, "xfs"},      FilesystemMagic{0x9123683E, "btrfs"},
    FilesystemMagic{0x2FC12FC1, "zfs"},      FilesystemMagic{0x01021994, "tmpfs"},
    FilesystemMagic{0x858458F6, "ramfs"},    FilesystemMagic{0x794C7630, "overlay"},
    FilesystemMagic{0x73717368, "squashfs"},
};

/// The type for a magic number; empty for unknown numbers, and for all FUSE filesystems.
constexpr std::string_view type_of_magic(std::uint32_t number) {
    const auto* known = std::ranges::find(filesystem_magics, number, &FilesystemMagic::number);
    return known == filesystem_magics.end() ? std::string_view() : known->type;
}

/// Types; for those of FUSE filesystems see is_network_filesystem().
inline constexpr std::array<std::string_view, 16> network_filesystems = {
    "lustre", "gpfs", "beegfs", "nfs",    "nfs4", "cifs", "smb2",     "smb3",
    "ceph",   "afs",  "panfs",  "wekafs", "9p",   "dvs",  "orangefs", "pvfs2",
};

constexpr bool is_network_magic(std::uint32_t number) {
    return std::ranges::find(network_filesystems, type_of_magic(number)) != network_filesystems.end();
}

} // namespace containerize
