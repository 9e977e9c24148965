// A program that answers the questions of pip/interpreter.h.
#pragma once

#include "../temporary.h"

#include <string>

#include <sys/stat.h>

namespace containerize::test {

/// `has` says whether it has venv, ensurepip and pip.
inline fs::path fake_python(const TemporaryDirectory& directory, const std::string& name,
                            const std::string& version, const std::string& has = "1 1 1") {
    const auto minor = version.substr(2, version.rfind('.') - 2);
    const auto program =
        directory.write(name, "#!/bin/sh\nprintf '%s\\n' /real/python /real /real/lib/python " + version +
                                  " " + version.substr(0, 1) + " " + minor + " " + has + "\n");
    chmod(program.c_str(), 0755);
    return program;
}

} // namespace containerize::test
