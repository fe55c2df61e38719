import { listOf, textOf } from '@interlude/protocol/fields';
import { agree, type Check, hold } from '../check';
import type { RunnerStage } from './runner-stage';

const WHY = '3, What log may say';
/** Of nobody: it has the shape that its service publishes, in pieces, so that no scanner takes it for a real one. */
const KEY = ['sk', 'ant', 'api03', 'b7Qm2ZtR9xKe4LpWv8Hs', 'Yd3NcUf6Ja1G'].join('-');

async function line(stage: RunnerStage, words: string): Promise<Record<string, unknown>> {
  const has = () => stage.fake.ledger.logs().find(({ message }) => textOf(message)?.includes(words));
  return await stage.until(`a log record with "${words}"`, has, 'Pass on the agent’s `log` lines as log records.');
}

export const SECRETS: readonly Check<RunnerStage>[] = [
  {
    group: 'secrets',
    name: 'its own token is in no log line, whoever wrote it there',
    why: WHY,
    async run(stage) {
      await stage.obey(`log info the dashboard takes ${stage.token} and nothing else`);
      const { redacted } = await line(stage, 'the dashboard takes');
      const all = JSON.stringify(stage.fake.ledger.logs());
      const todo = 'Take it out of each message before the line leaves you.';
      hold(!all.includes(stage.token), 'log lines without the token', 'it is in one', todo);
      agree('redacted', redacted, 1, 'Count in `redacted` what you took out.');
    },
  },
  {
    group: 'secrets',
    name: 'what looks like a secret is taken out of a log line, which says so',
    why: WHY,
    async run(stage) {
      await stage.obey(`log warn the model answers to ${KEY} today`);
      const { message, redacted } = await line(stage, 'the model answers to');
      const todo = 'Put [redacted: <kind>] in place of what has the shape of a credential.';
      hold(!String(message).includes(KEY), 'a line without the key', message, todo);
      hold(/\[redacted: [^\]]+\]/.test(String(message)), 'a line that says so', message, todo);
      agree('redacted', redacted, 1, 'Count in `redacted` what you took out.');
    },
  },
  {
    group: 'secrets',
    name: 'the agent is given nothing of what is Interlude’s own',
    why: '8, Invariants, 10',
    async run(stage) {
      await stage.obey('say hello');
      const seen = stage.journal.lines.filter(({ dir }) => dir === 'start').flatMap(({ sees }) => listOf(sees));
      agree('what it finds in its environment', seen, [], 'Leave INTERLUDE_* out of the agent’s environment.');
    },
  },
];
