import { agree, type Check, hold } from '../check';
import type { RunnerStage } from './runner-stage';

const WHY = '2, Limits';
const UNITS = 10 * 1024 * 1024;

export const LIMITS: readonly Check<RunnerStage>[] = [
  {
    group: 'limits',
    name: 'ten million characters arrive whole, in records of at most 1 MiB that cut no character in two',
    why: WHY,
    async run(stage) {
      const before = stage.fake.ledger.faults.length;
      const turn = await stage.obey('big');
      const said = turn.items.findLast((item) => item.kind === 'message' && item.role === 'assistant');
      const text = stage.fake.ledger.text(stage.sessionId, said?.id ?? '');
      const todo = 'Tell a long text as several deltas, cut between characters.';
      const whole = '0123456789😀'.repeat(Math.ceil(UNITS / 12)).slice(0, UNITS);
      agree('its length', text.length, UNITS, todo);
      const odd = text.indexOf('\ufffd');
      hold(text === whole, 'the text as it was said', text.slice(Math.max(0, odd - 20), odd + 20), todo);
      agree('records that are too large', stage.fake.ledger.faults.slice(before), [], todo);
    },
  },
  {
    group: 'limits',
    name: 'no request is over 8 MiB or 10,000 records',
    why: WHY,
    async run(stage) {
      await stage.obey('count 300 0');
      const largest = Math.max(...stage.fake.seen.map(({ bytes }) => bytes));
      hold(largest <= 8 * 1024 * 1024, 'requests of at most 8 MiB', `${largest} bytes`, 'Send smaller batches.');
      const most = Math.max(...stage.fake.seen.map(({ records }) => records.length));
      hold(most <= 10_000, 'at most 10,000 records at once', most, 'Send smaller batches.');
    },
  },
];
