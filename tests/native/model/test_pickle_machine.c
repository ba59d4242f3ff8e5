/* tests/native/model/test_pickle_machine.c -- which opcodes a pickle may have, and on what. */
#include "pickles.h"

static void opcodes_beyond_the_known_ones_are_refused(void)
{
    refuse(PICKLE(""), "byte 0: the opcode has an operand of 1 bytes, and 0 are left");
    refuse(PICKLE("N."), "byte 0: not a pickle: it begins with 0x4e");
    refuse(PICKLE("\x80\4\x95\1\0\0\0\0\0\0\0N."),
           "byte 0: pickle protocol 4: save with protocol 2");
    refuse(PICKLE("\x80\2\x8c\1a."),
           "byte 2: opcode 0x8c of pickle protocol 4: save with protocol 2");
    refuse(PICKLE("\x80\2i"), "byte 2: opcode 0x69 is not among those that are read");
    refuse(PICKLE("\x80\2\x80\2N."), "byte 2: opcode 0x80 is not among those that are read");
    refuse(PICKLE("\x80\2N"), "byte 3: the pickle ends without STOP");
}

static void items_that_are_not_on_the_stack_are_refused(void)
{
    refuse(PICKLE("\x80\2."), "byte 2: the opcode takes 1 items, and the stack has 0");
    refuse(PICKLE("\x80\2N\x86."), "byte 3: the opcode takes 2 items, and the stack has 1");
    refuse(PICKLE("\x80\2N(\x85."), "byte 4: the opcode takes 1 items, and the stack has 0");
    refuse(PICKLE("\x80\2q\0."), "byte 2: the opcode takes an item, and the stack is empty");
    refuse(PICKLE("\x80\2(q\0."), "byte 3: the opcode takes an item, and the stack is empty");
    refuse(PICKLE("\x80\2t."), "byte 2: the opcode takes a mark, and there is none");
    refuse(PICKLE("\x80\2NN."), "byte 4: STOP with 1 items and 0 marks left");
    refuse(PICKLE("\x80\2(N."), "byte 4: STOP with 0 items and 1 marks left");
    refuse(PICKLE("\x80\2h\0."), "byte 2: nothing is in the memo under 0");
    refuse(PICKLE("\x80\2Nq\1h\0."), "byte 5: nothing is in the memo under 0");
    refuse(PICKLE("\x80\2Nr\xff\xff\xff\xff."),
           "byte 3: memo number 4294967295 is out of all proportion");
}

static void opcodes_on_the_wrong_kind_of_item_are_refused(void)
{
    refuse(PICKLE("\x80\2NNa."), "byte 4: items are appended to what is no list but none");
    refuse(PICKLE("\x80\2](NNa."), "byte 6: items are appended to what is no list but none");
    refuse(PICKLE("\x80\2)(Ne."), "byte 5: items are appended to what is no list but tuple");
    refuse(PICKLE("\x80\2]NNs."), "byte 5: items are set in what is no dict but list");
    refuse(PICKLE("\x80\2ctorch\nSize\n)RNNs."),
           "byte 18: items are set in what is no dict but object");
    refuse(PICKLE("\x80\2}(Nu."), "byte 5: a key without a value");
    refuse(PICKLE("\x80\2}]Ns."), "byte 5: a list is a key");
    refuse(PICKLE("\x80\2N)R."), "byte 4: a call of what is no global but none");
    refuse(PICKLE("\x80\2N)\x81."), "byte 4: a call of what is no global but none");
    refuse(PICKLE("\x80\2}}b."), "byte 4: a state for what is no object but map");
    refuse(PICKLE("\x80\2ctorch\nSize\n)R}b}b."), "byte 19: a second state for one object");
}

static void a_key_twice_in_one_dict_is_refused(void)
{
    refuse(PICKLE("\x80\2}(X\1\0\0\0aNX\1\0\0\0aNu."), "byte 11: key \"a\" a second time");
    refuse(PICKLE("\x80\2}K\7NsK\7Ns."), "byte 7: key 7 a second time");
    refuse(PICKLE("\x80\2}(NK\1NK\2u."), "byte 8: the same none is a key a second time");
    becomes(PICKLE("\x80\2}(K\1NX\1\0\0\0001NG\x3f\xf0\0\0\0\0\0\0Nu."), "map 3\n"
                                                                         "  integer 1\n"
                                                                         "  none\n"
                                                                         "  text 31\n"
                                                                         "  none\n"
                                                                         "  float 1\n"
                                                                         "  none\n");
}

int main(void)
{
    RUN(opcodes_beyond_the_known_ones_are_refused);
    RUN(items_that_are_not_on_the_stack_are_refused);
    RUN(opcodes_on_the_wrong_kind_of_item_are_refused);
    RUN(a_key_twice_in_one_dict_is_refused);
    return 0;
}
