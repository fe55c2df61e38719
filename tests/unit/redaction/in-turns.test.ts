import { describe, expect, it } from 'vitest';
import { Pace } from '@/db/next-turn';
import { redactModel } from '@/lib/redaction/redact-model';
import { longestHold } from '../../support/loop-probe';
import { expectWithin } from '../../support/pace';

const MIB = 1024 * 1024;
const filled = (unit: string) => unit.repeat(Math.ceil(MIB / unit.length)).slice(0, MIB);

describe('looking through all', () => {
  it.each(['prose of some kind\n', 'one line ', 'password: token= key ', '\u001b[31mred\u001b[0m ', 'sk-', 'word'])(
    'of a page, whatever is in it, never holds up others for long: %j',
    async (unit) => {
      const pace = new Pace();
      const rest = () => (pace.isDue ? pace.rest() : null);
      const model = { turns: [{ items: [{ text: filled(unit) }, { input: { command: filled(unit) } }] }] };
      const hold = await longestHold(async () => {
        await redactModel(model, rest);
      });
      expectWithin(hold, 100);
    },
  );

  it('gives a value without secrets back as it was', async () => {
    const model = { position: '7', turns: [{ id: 'a', items: [{ text: 'all of it', args: { n: 1 } }] }] };
    expect(await redactModel(model, () => null)).toEqual({ ...model, redacted: 0 });
  });

  it('takes a secret out by its name, out of a name and out of an id, wherever an agent filled in what it liked', async () => {
    const token = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
    const list = [{ id: token, password: 'w0rds-and-numb3rs', [token]: 1, deep: [[{ token: 'abc-def-1' }]] }];
    const { record, id, redacted } = (await redactModel({ record: { list }, id: token }, () => null)) as never as {
      [name: string]: unknown;
    };
    expect(id).toBe(token);
    expect(redacted).toBe(4);
    expect(record).toEqual({
      list: [
        {
          id: '[redacted: github-token]',
          password: '[redacted: password]',
          '[redacted: github-token]': 1,
          deep: [[{ token: '[redacted: token]' }]],
        },
      ],
    });
  });
});
