// What a program that writes files does first.
#ifndef SLUICE_RUNTIME_FILES_PROCESS_H
#define SLUICE_RUNTIME_FILES_PROCESS_H

namespace sluice::files {

/// Takes the descriptors 0 to 2 where they are closed, so that no file opened later gets one of them and with it what
/// is meant for the terminal; writing to a standard output that was closed stays an error. A limit to the size of
/// files becomes an error of writing, where it would have ended the process and left what was half written.
void prepareProcess();

} // namespace sluice::files

#endif
