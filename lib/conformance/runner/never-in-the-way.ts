import { agree, type Check, hold } from '../check';
import type { JournalLine } from './agent-journal';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '8, Invariants, 9';
/** A busy machine holds up anybody for so long. */
const BOUND_MS = 2_500;
const AWAY_MS = 4_000;
const SLOW_MS = 4_000;
/** More than a pipe holds, so that an agent whose runner does not read it stands still. */
const PIECE = 8_000;

/** @returns for how long the agent stood still because nobody read what it wrote */
function heldUp(lines: readonly JournalLine[]): number {
  return Math.max(0, ...lines.map(({ blockedMs = 0 }) => blockedMs));
}

export const NEVER_IN_THE_WAY: readonly Check<RunnerStage>[] = [
  {
    group: 'never in the way',
    name: 'the agent works on as if nothing were while the server is away, and all of it is told afterwards',
    why: WHY,
    async run(stage) {
      const message = await stage.say(`count 50 30 ${PIECE}`);
      const wrote = () => stage.journal.inTurnOf(message.id).filter(({ type }) => type === 'say');
      await stage.until('its first words', () => wrote().length >= 5, 'Give the message to the agent.');
      const todo = 'Store what the agent says, and read on; send it in the background.';
      stage.fake.isAway = true;
      try {
        const isBack = new Promise((resolve) => setTimeout(resolve, AWAY_MS));
        const seen = () => `${wrote().length} texts`;
        await stage.until('the agent to go on meanwhile', () => wrote().length >= 40, todo, { seen });
        await isBack;
      } finally {
        stage.fake.isAway = false;
      }
      const longest = heldUp(stage.journal.inTurnOf(message.id));
      hold(longest < BOUND_MS, `nothing to hold it up for ${BOUND_MS} ms`, `${longest} ms`, todo);
      const said = saidIn(await stage.answered(message)).map((text) => Number.parseInt(text, 10));
      const expected = Array.from({ length: 50 }, (_, at) => at + 1);
      agree('the texts', said, expected, 'Send what waits, in order, each record once.');
    },
  },
  {
    group: 'never in the way',
    name: 'a server that answers slowly holds up no agent',
    why: WHY,
    async run(stage) {
      await stage.running();
      stage.fake.weather = () => ({ kind: 'slow', ms: SLOW_MS });
      try {
        const message = await stage.say(`count 60 5 ${PIECE}`);
        const isDone = () => stage.journal.inTurnOf(message.id).at(-1)?.type === 'turn-end';
        await stage.until('the end of its turn', isDone, 'Read the agent while an answer is on its way.');
        const longest = heldUp(stage.journal.inTurnOf(message.id));
        hold(
          longest < BOUND_MS,
          `nothing to hold it up for ${BOUND_MS} ms`,
          `${longest} ms`,
          'Send in the background.',
        );
        stage.fake.weather = () => null;
        await stage.answered(message);
      } finally {
        stage.fake.weather = () => null;
      }
    },
  },
];
