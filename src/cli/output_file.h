// The file of -o: where a command writes its result.
#pragma once

#include "core/error.h"
#include "spec/written_list.h"

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// Adds -o.
void add_output_option(CLI::App& command, std::string& output);

/// Before any work. Fails with an input error if `output` is no place for a new file: in no directory, the
/// `input`, a device, or a link that would be replaced. Nothing is wrong with an empty path.
Status check_output(const std::filesystem::path& output, const std::filesystem::path& input);

/// Shows the notes as warnings. Then replaces the file atomically, or prints the text if `output` is empty.
/// The text may repeat secrets of the `input`, so nobody else may read the file who cannot read that.
Status write_output(const std::filesystem::path& output, const std::filesystem::path& input,
                    const spec::WrittenList& list);

} // namespace containerize::cli
