// What a message must contain.
#pragma once
#include <gtest/gtest.h>

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << (message)
