// Package stackfix restores the root-side frames of call stacks that a recorder
// cut off: at a limit of frames (EventPipe keeps the innermost 100), at the end of
// a copy of the stack (collect-linux copies 4 KiB), or where unwinding failed. It
// is a pure algorithm on stack ids and knows no file format.
//
// # Use
//
// Give [Fix] the stacks as a tree ([stacks.Tree]), the method of each
// frame ([Frames]; [Names] where frames are names), and the samples of every thread
// in the order of time, those with a cut stack marked. It answers with one [Repair]
// for each of them: the whole stack, how it is known and how sure that is. What
// cannot be known gets a bridge: one frame that stands for the missing ones.
// Nothing is deleted, whole stacks stay as they are, and a repaired stack always
// ends with the frames that were recorded, less outermost ones that a recorder is
// known to make up ([Sample].Suspect).
//
// # Method
//
//  1. Samples of a thread are cut into runs where it says so ([Thread].Breaks), and
//     equal ones in a row are one block.
//
//  2. A model counts how often each frame calls each other one. The surprise of a
//     call is -log2 of its share. An overlap of two stacks is worth the surprise of
//     its calls, in bits, not its length: frames that always follow each other tell
//     nothing. Equal frames (equal return addresses) count in full, frames of equal
//     methods half.
//
//  3. Candidates for the missing prefix are: the places in the nearest known stacks
//     before and after where the cut stack can begin, and the prefixes that stand
//     before the same first frames in any known stack of the recording, looked up
//     for contexts of 1 to 64 frames. Each is scored by the bits of its overlaps, by
//     how many frames would have gone and come between the samples (as they do
//     between known samples of this recording), by how often the code calls it so,
//     and by how strange it is on this thread. What calls a context is also counted
//     in what is left of the cut stacks: whole stacks are shallower, and know the
//     outermost turn of a recursion only. A caller that is hardly ever seen there is
//     not believed.
//
//  4. A cut stack without a good candidate is made longer, so that it may find one
//     later: by what overlapping cut neighbours show above it, by what stands above
//     the same first frames wherever they were recorded, as far as all places agree,
//     or by callers that never vary.
//
//  5. Steps 3 and 4 are repeated while they find something. A repaired stack is
//     evidence for the next. At first nothing is made longer, and no recursion is answered:
//     what can be answered as it was recorded is the best evidence for the rest.
//
//  6. How sure an answer is, is measured. Evidence is told apart by kind and
//     strength: does the cut go through a recursion, what do known stacks have above
//     the same first frames, how often is this caller seen there in any stack, do both
//     neighbours overlap, one, or none, by how many bits more than at any other place,
//     and by how many bits does the answer lead. Before the recording is repaired parts
//     of it are cut once more, to 70 and to 85 % of the depth, and repaired in trial:
//     where the truth is known every answer says how good its evidence is in this very
//     recording. Evidence that was rarely seen is held near what it is worth in recordings
//     at large, shifted by how much more or less this recording can be trusted as a
//     whole, and less different from others where strong overlaps turn out to be wrong
//     more often than usual: in code that repeats itself long overlaps come by chance.
//     What pieces an answer is made of limits how sure it is: where eight methods in a row were
//     never recorded with their caller, so that two pieces only meet; where a stack was made
//     longer and then overlaps none, or by a frame or two at a place that is called in several
//     ways. Where no more than one recorded stack speaks for it, it needs to be surer.
//     An answer below [Options].MinConfidence is not given. The depth of a
//     recursion is believed only where an overlap is better by far than at any other
//     turn, or where the trial has shown that such evidence is right: a wrong depth
//     misleads all that overlap. What makes a stack longer (4) is measured the same way,
//     and by doubt: how many bits it takes to believe it, by who calls whom alone.
//
//     Where frames are told apart by their names only, answers are reviewed: where several ways
//     lead into what one holds, it is taken back if neither the recorded whole stacks around it
//     nor those near in time that hold the same take its way.
//
//     A recorder that walks stacks to their roots, though it keeps the innermost frames only, takes longer for deeper ones
//     ([Sample].Effort). Where it took no longer than an answer takes, that answer is surer: wrong ones are made of whole stacks,
//     which are shallow, and mostly lack a good part of the stack. That it took longer says little, as it may have been
//     kept waiting.
//
//     An answer is taken back, too, where it enters a recursion and nearly all cut stacks that hold the same thirty-two
//     frames came there by another turn: whole stacks know the fewest turns only.
//
//  7. Where the answer is a bridge, root frames stay open in front of it as far as they
//     are known. They are open in the nearest known stacks before and after, and all
//     known stacks of the run share them, or all known calls of what the cut stack goes
//     on with stand under them: sixteen calls, or more if the trial shows that so many
//     can mislead. They never reach into the recorded frames, and are not shown where
//     hardly any of the other cut stacks with the same calls is known to begin so.
//     Neither they nor an answer begin with the method that another thread was started for, where nearly
//     all whole stacks of this one show that it was started for something else.
//
//  8. Other stacks vote, whole ones on what such a stack begins with and all on what stands
//     right above it: those nearest in time, of any thread, that hold the eight or sixteen
//     call sites it goes on with. What all agree in is shown before and behind the bridge; right
//     above the stack as long as nothing else was seen to call the six methods below, or, of what
//     its neighbours overlap too, the twenty-four methods below.
//     Where they know several ways in, the recorded whole stacks before and after may show
//     which one to take, if the voters themselves took the way that the stacks around
//     theirs show; and where the nearest ones agree, those of its own thread before and after among them, what only other
//     threads show at other times is not heard. Where all agree to the last frame, if need be all that hold more of its call
//     sites, up to thirty-two, or as many of its methods, whatever calls they are at, or an answer of step 6 that was not
//     sure enough gets most votes, and no recursion is cut, there is no bridge. One vote is
//     enough for an answer that a model of all open stacks between two known ones gives too:
//     the nearest one before or after, or one that is near. At last all of that is weighed together: an answer that
//     nothing alone makes sure enough may have enough that speaks for it. Neither is asked where the whole stacks of a
//     thread go over from the answer to another one and back as it happens: then the nearest tells
//     nothing. None of that is evidence for another stack, so samples come first, and the stacks of
//     other events then, if they are asked for.
//     Whole stacks are the shallow ones, and what all of them show may not hold for those that are cut. So where
//     they gave answers, stacks that are cut are cut once more, and the same are asked: what was recorded shows how
//     often they are right in this recording, and none of their answers is surer than that.
//
//  9. The runtime compiles methods into their callers, or anew so that they leave no frame: a call that went
//     through a third method is direct from then on. Where all that shows the one is older than all that shows
//     the other, an answer that shows either at a time of which nothing tells which it was is not given, and
//     what stands around a bridge ends there.
//
//  10. Where nobody else calls what a stack begins with, wherever it was recorded, its caller is
//     shown too, and so on; up to where threads begin the stack is whole.
//
// Each process is repaired by itself, and one in which nothing is cut is only counted. The answer
// depends on the input only, and not on how much runs at once: what is found on one thread is
// evidence for another one from the next round on. Memory grows with the number of distinct stacks
// and of cut stacks, not of samples: of whole stacks far from a cut only numbers are kept. Time
// grows with the number of changes of stack. [FixContext] can be told to leave off.
package stackfix
