// A layer's tar archive, decompressed and verified while it is read.
#pragma once

#include "base/oci_layers.h"
#include "util/digest.h"

#include <memory>
#include <optional>
#include <vector>

#include <archive.h>
#include <archive_entry.h>

namespace containerize::base {

class TarStream {
public:
    /// `limit`: most bytes of the tar archive.
    static Result<std::unique_ptr<TarStream>> open(const Layer& layer, std::uint64_t limit);
    TarStream(const TarStream&) = delete;
    TarStream& operator=(const TarStream&) = delete;

    /// The next entry, which is valid until the next call; null at the end.
    Result<archive_entry*> next();
    /// The current entry's next bytes, at most `wanted`; holes are zeros.
    Result<std::span<const std::byte>> read(std::uint64_t wanted);
    /// Reads what follows the last entry, and compares the digests.
    Status verify();

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; } ///< of the archive, so far

private:
    TarStream(const Layer& layer, std::uint64_t limit) : layer_(layer), limit_(limit) {}
    [[nodiscard]] std::unexpected<Error> broken(archive* of) const;
    la_ssize_t read_compressed(const void** data);
    la_ssize_t read_tar(const void** data);

    using Archive = std::unique_ptr<archive, int (*)(archive*)>;
    const Layer& layer_;
    std::uint64_t limit_;
    ReadMore source_;
    std::optional<Error> failure_; ///< of the source, because libarchive cannot pass it on
    Sha256 compressed_, tar_digest_;
    std::uint64_t bytes_ = 0;
    bool nothing_ = false; ///< the layer is empty
    std::vector<std::byte> plain_, content_;
    Archive filter_{archive_read_new(), archive_read_free};
    Archive tar_{archive_read_new(), archive_read_free};
};

} // namespace containerize::base
