import { redactModel } from '@interlude/protocol/redaction/redact-model';
import { it } from 'vitest';
import { Yielder } from '@/db/yield-to-loop';
import { longestBlockMs } from '@/tests/support/timing';
import { expectWithin } from '../../support/timing';

const MIB = 1024 * 1024;
const filled = (unit: string) => unit.repeat(Math.ceil(MIB / unit.length)).slice(0, MIB);

it.each(['prose of some kind\n', 'one line ', 'password: token= key ', '\u001b[31mred\u001b[0m ', 'sk-', 'word'])(
  'redactModel yields at least every 100 ms over a page full of %j',
  async (unit) => {
    const pace = new Yielder();
    const model = { turns: [{ items: [{ text: filled(unit) }, { input: { command: filled(unit) } }] }] };
    const hold = await longestBlockMs(async () => {
      await redactModel(model, pace.maybeYield);
    });
    expectWithin(hold, 100);
  },
);
