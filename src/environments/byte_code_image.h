// The byte-code of a package, compiled once and kept as an image beside that of its files.
#pragma once

#include "core/error.h"
#include "environments/byte_code_workers.h"
#include "image/reader.h"
#include "image/writer.h"

#include <filesystem>
#include <string>

namespace containerize::environments {

/// Compiles the modules in "site-packages" of a package's image, and adds their byte-code at the places where
/// Python looks for it ("site-packages/a/__pycache__/b.cpython-311.pyc"). What cannot be compiled has none,
/// as after any other installation.
Status add_byte_code(image::Reader& files, ByteCodeWorkers& workers, unsigned jobs, image::Writer& writer);

/// "site-packages/a/__pycache__/b.cpython-311.pyc" for "site-packages/a/b.py" and "cpython-311".
std::string path_of_byte_code(const std::filesystem::path& module, const std::string& cache_tag);

} // namespace containerize::environments
