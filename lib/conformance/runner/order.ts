import { agree, type Check } from '../check';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '8, Invariants, 2';

export const ORDER: readonly Check<RunnerStage>[] = [
  {
    group: 'order',
    name: 'a hundred texts in a row are told in the order in which they were said, each once',
    why: WHY,
    async run(stage) {
      const said = saidIn(await stage.obey('count 100 0'));
      const expected = Array.from({ length: 100 }, (_, at) => `${at + 1}`);
      agree('the texts', said, expected, 'Number records in the order in which the agent wrote.');
    },
  },
  {
    group: 'order',
    name: 'while two turns and a task take turns, everything comes in the agent’s own order',
    why: WHY,
    async run(stage) {
      await stage.running();
      const since = Date.now();
      await stage.obey('background 0.05');
      await stage.obey('count 10 10');
      const woken = () =>
        stage.turns.some((turn) => turn.kind === 'between-run' && turn.startedAt >= since && turn.endedAt);
      await stage.until('the turn that the task woke', woken, 'Tell its beginning and its end.');
      const entries = stage.fake.ledger.entries(stage.sessionId);
      const wrote = stage.journal.wrote('say').filter(({ at }) => at >= since);
      const ids = wrote.map(({ id }) => String(id));
      const told = entries.flatMap(({ event }) => (typeof event.messageId === 'string' ? [event.messageId] : []));
      const seen = [...new Set(told)].filter((id) => ids.includes(id));
      agree('the texts', seen, ids, 'Let no record overtake another one of the same session.');
    },
  },
];
