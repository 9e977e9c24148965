// Settings of a site and its users for all builds. Files, in this order:
//   /etc/containerize/config.yaml             the machine's
//   $CONTAINERIZE_CONFIG                      a site's, set by a module; must exist
//   $XDG_CONFIG_HOME/containerize/config.yaml the user's (default: ~/.config)
//   $CW_GLOBAL_YAML                           tykky's; only keys that have a meaning here
// Each is a map of sections, which are maps of keys (config/key.h):
//   defaults: used if the option is not typed; later files override earlier ones
//   force:    overrides options and later files
//   prepends, appends: extend lists from any source, except forced ones
#pragma once

#include "config/key.h"
#include "core/error.h"
#include "util/process.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

/// A value, an item of a list, or an entry of a map.
struct Setting {
    std::string value;
    std::string where = "default"; ///< or "file:line"
    std::string name = {};         ///< for an entry of a map
    bool forced = false;
};

/// The setting of one key.
struct Value {
    std::vector<Setting> settings; ///< at most one; for a list its items, for a map its entries by name
    std::vector<Setting> prepends = {}, appends = {}; ///< for a list
    bool forced = false;                              ///< for a map see its entries
    std::string forced_where;                         ///< "file:line"
};

enum class Section { defaults, prepends, appends, force };

/// What one file says about one key.
struct Given {
    Section section;
    Key key;
    std::vector<Setting> settings = {};
    std::string where;
};

class Configuration {
public:
    /// The built-in defaults.
    Configuration();

    /// Reads all files. Mistakes are input errors with file:line and the line's text. Also fails if other
    /// users could have written $CONTAINERIZE_CONFIG or the user's file. `root` replaces "/" in tests.
    static Result<Configuration> read(const Environment& environment,
                                      const std::filesystem::path& root = "/");

    [[nodiscard]] const Value& operator[](Key key) const;
    /// Empty if not set.
    [[nodiscard]] std::string text(Key key) const;
    [[nodiscard]] bool flag(Key key) const;
    /// 0 if not set.
    [[nodiscard]] unsigned number(Key key) const;
    /// An absolute path with variables expanded; empty if not set. Fails with an input error if a variable in
    /// it is not set.
    [[nodiscard]] Result<std::filesystem::path> directory(Key key, const Environment& environment) const;
    /// Including prepended and appended items.
    [[nodiscard]] std::vector<Setting> list(Key key) const;
    /// The items of a list, expanded as by directory().
    [[nodiscard]] Result<std::vector<std::filesystem::path>>
    directories(Key key, const Environment& environment) const;

    /// The files that were read.
    [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }
    /// Settings without effect and the reasons, to show with the configuration.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    /// Files must be added in their order.
    void add(const Given& given);

    std::array<Value, number_of_keys> values_;
    std::vector<std::filesystem::path> files_;
    std::vector<std::string> notes_;
};

/// The path of the machine's own file.
std::filesystem::path machine_file(const std::filesystem::path& root = "/");

/// All mistakes in one file; empty if there are none.
std::vector<Error> check_file(const std::filesystem::path& file);

/// Fails with an input error if others than root or this user could have written the file: it controls what
/// is run.
Status check_trusted(const std::filesystem::path& file);

} // namespace containerize::config
