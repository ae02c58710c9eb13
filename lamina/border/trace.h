// What the border tells a reader of the event stream beyond what every floor tells.
#pragma once

#include "lamina/border/arg_parser.h"

namespace lamina::border {

// Why a signature does not fit a call: facts, of which text is made when somebody reads it.
struct Mismatch {
  enum Kind : uint8_t {
    kFits,  // not at all: it does
    kTooMany,
    kType,
    kItem,  // of a list
    kUnknown,
    kTwice,
    kMissing
  };
  Kind kind = kFits;
  int8_t signature = 0;
  int8_t param = 0;
  int32_t position = 0;      // from 1; 0 for one given by name. kTooMany: how many may be given
  int32_t given = 0;         // kTooMany: how many were; kItem: which item
  uint32_t missing = 0;      // bit i: parameter i
  PyObject* what = nullptr;  // borrowed: the type of what was given, or the name of it
};
std::string text_of(const Mismatch& m, const Signature& s);

// Whether this thread's reader wants to know how signatures were matched.
bool wants_matching();
void note_matching(const Parser& parser, int chosen, const Mismatch* others, int count);

}  // namespace lamina::border
