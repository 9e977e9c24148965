// What pip or uv would install, and from which files: they resolve, and do not install.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace containerize::pip {

struct ResolvedPackage {
    enum class Kind {
        wheel,
        needs_build, ///< a source archive, a repository or a local project
    };

    std::string name, version;
    std::string url = {};        ///< of the wheel: "https://...", without credentials, or "file:///..."
    std::string sha256 = {};     ///< of the wheel; empty only for what must be built
    std::uint64_t size = 0;      ///< of the wheel; 0 if unknown
    bool requested = false;      ///< named in the requirements: not only a dependency
    std::string direct_url = {}; ///< the text of direct_url.json; empty for packages from an index
    Kind kind = Kind::wheel;
    std::string requirement = {}; ///< for what must be built: the line from which pip or uv can build it
};

struct Resolution {
    std::vector<ResolvedPackage> packages; ///< sorted by normalised name; without those installed already
    /// Why these packages can only be installed by pip or uv itself, to follow "because"; empty if they can
    /// be fetched and linked.
    std::string obstacle = {};
};

} // namespace containerize::pip
