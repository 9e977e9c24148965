// What a site and its users decided once for all builds. Files in their order:
//   /etc/containerize/config.yaml             the machine's
//   $CONTAINERIZE_CONFIG                      a site's, from a module; must exist
//   $XDG_CONFIG_HOME/containerize/config.yaml the user's (~/.config without that variable)
//   $CW_GLOBAL_YAML                           tykky's, as far as its keys mean something here
// Each is a map of sections, which are maps of keys (config/key.h):
//   defaults: used where the user types no option; later files win
//   force:    wins over options and over later files
//   prepends, appends: extend lists, whoever gives those; not forced ones
#pragma once

#include "config/key.h"
#include "util/error.h"
#include "util/process.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace containerize::config {

/// A value, or an item of a list, or an entry of a map.
struct Setting {
    std::string value;
    std::string where = "default"; ///< else "file:line"
    std::string name;              ///< of an entry of a map
    bool forced = false;
};

/// What is set for one key.
struct Value {
    std::vector<Setting> settings; ///< at most one; of a list its items, of a map its entries by name
    std::vector<Setting> prepends, appends; ///< of a list
    bool forced = false;                    ///< of a map each entry says so
    std::string forced_where;               ///< "file:line"
};

enum class Section { defaults, prepends, appends, force };

/// What one file says about one key.
struct Given {
    Section section;
    Key key;
    std::vector<Setting> settings;
    std::string where;
};

class Configuration {
public:
    /// What counts where there is no file.
    Configuration();

    /// Reads what is there. Mistakes are input errors with file:line and the line itself; so are files of
    /// the user and of $CONTAINERIZE_CONFIG that others could have written. `root` stands for "/" so that
    /// tests can bring their own /etc.
    static Result<Configuration> read(const Environment& environment,
                                      const std::filesystem::path& root = "/");

    [[nodiscard]] const Value& operator[](Key key) const;
    /// Empty if it is not set.
    [[nodiscard]] std::string text(Key key) const;
    [[nodiscard]] bool flag(Key key) const;
    /// 0 if it is not set.
    [[nodiscard]] unsigned number(Key key) const;
    /// Absolute, with variables expanded; empty if it is not set. A variable that is not set is an input
    /// error.
    [[nodiscard]] Result<std::filesystem::path> directory(Key key, const Environment& environment) const;
    /// With what extends it.
    [[nodiscard]] std::vector<Setting> list(Key key) const;
    /// The items of a list as directory() has its value.
    [[nodiscard]] Result<std::vector<std::filesystem::path>>
    directories(Key key, const Environment& environment) const;

    /// Those that were read.
    [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }
    /// What has no effect, and why: for who looks at the configuration.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    /// Later files after earlier ones.
    void add(const Given& given);

    std::array<Value, number_of_keys> values_;
    std::vector<std::filesystem::path> files_;
    std::vector<std::string> notes_;
};

/// The machine's own file.
std::filesystem::path machine_file(const std::filesystem::path& root = "/");

/// All mistakes of one file; none if it is good.
std::vector<Error> check_file(const std::filesystem::path& file);

/// Refuses a file that others than root or this user could have written: it decides what is run.
Status check_trusted(const std::filesystem::path& file);

} // namespace containerize::config
