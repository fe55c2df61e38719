import { readFile } from 'node:fs/promises';
import * as errors from '@interlude/protocol/errors';
import { CUSTOM } from '@interlude/protocol/event-fields';
import * as limits from '@interlude/protocol/limits';
import { describe, expect, test } from 'vitest';

/** PROTOCOL.md is normative, so what it says of the code must be so. */
const page = await readFile(new URL('../../../lib/protocol/PROTOCOL.md', import.meta.url), 'utf8');
const root = new URL('../../../', import.meta.url);

/** Fewest letters of a title besides its parameters: shorter texts would match almost any title. */
const MIN_TITLE = 6;

/** True if the source has a test with this title. The page replaces parameters such as `%s` by words. */
function hasTitle(source: string, title: string): boolean {
  const patterns = [...source.matchAll(/'([^'\n]* [^'\n]* [^'\n]*)'/g)].map(([, pattern = '']) => pattern);
  return patterns.some((pattern) => {
    const literals = pattern.split(/%[a-z#]|\$[a-z]+/).map((text) => text.replace(/[^\w ]/g, '\\$&'));
    const isTitle = literals.join('').replace(/\W/g, '').length >= MIN_TITLE;
    return isTitle && new RegExp(`^${literals.join('.+')}$`).test(title);
  });
}

describe('PROTOCOL.md', () => {
  test('lists exactly the error codes with their statuses', async () => {
    const listed = [...page.matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)].map(([, code, status]) => [code, Number(status)]);
    expect(listed).toEqual(Object.entries(errors.ERROR_STATUS));
  });

  test('names existing tests', async () => {
    const named = [...page.matchAll(/^ +- `(tests\/[^`]+)`: (.+)$/gm)];
    expect(named.length).toBeGreaterThan(20);
    const sources = await Promise.all(
      named.map(([, file = '']) => readFile(new URL(file, root), 'utf8').catch(() => '')),
    );
    const missing = named.filter(([, , title = ''], index) => !hasTitle(sources[index] ?? '', title));
    expect(missing.map(([line]) => line)).toEqual([]);
  });

  test('names a first-tier test for each invariant', () => {
    const section = page.slice(page.indexOf('## 8.'), page.indexOf('## 9.'));
    const numbers = [...section.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
    expect(numbers.length).toBeGreaterThanOrEqual(11);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    const invariants = section.split(/^\d+\. /m).slice(1);
    const inFirstTier =
      /- `tests\/(unit|ui|property|contract|integration|e2e|faults\/attack)\/[\w/-]+(\.test\.tsx?|-contract\.ts)`/;
    for (const invariant of invariants) expect(invariant).toMatch(inFirstTier);
  });

  test('quotes the current limits', () => {
    const named = (name: string) => page.split('\n').find((line) => line.includes(`\`${name}\``)) ?? '';
    expect(named('MAX_REQUEST_BYTES')).toContain(`${limits.MAX_REQUEST_BYTES / 1024 / 1024} MiB`);
    expect(named('MAX_RECORD_BYTES')).toContain(`${limits.MAX_RECORD_BYTES / 1024 / 1024} MiB`);
    expect(named('MAX_JSON_DEPTH')).toContain(` ${limits.MAX_JSON_DEPTH} `);
    expect(named('MAX_RECORDS_PER_REQUEST')).toContain(` ${limits.MAX_RECORDS_PER_REQUEST.toLocaleString('en')} `);
    expect(named('MAX_ID_LENGTH')).toContain(` ${limits.MAX_ID_LENGTH} `);
    expect(named('MAX_TOPICS')).toContain(` ${limits.MAX_TOPICS} `);
    expect(named('MAX_MESSAGE_BYTES')).toContain(`${limits.MAX_MESSAGE_BYTES / 1024} KiB`);
    expect(named('MAX_ATTACHMENT_BYTES')).toContain(`${limits.MAX_ATTACHMENT_BYTES / 1024 / 1024} MiB`);
    expect(named('MAX_MESSAGE_ATTACHMENTS')).toContain(
      `| ${limits.MAX_MESSAGE_ATTACHMENTS}, and ${limits.MAX_MESSAGE_ATTACHMENT_BYTES / 1024 / 1024} MiB |`,
    );
    expect(named('ATTACHMENT_KEPT_MS')).toContain(`${limits.ATTACHMENT_KEPT_MS / 3_600_000} hours`);
    expect(named('MAX_OBLIGATION_TEXT')).toContain(` ${limits.MAX_OBLIGATION_TEXT.toLocaleString('en')} `);
    expect(named('MAX_LOG_MESSAGE_BYTES')).toContain(`${limits.MAX_LOG_MESSAGE_BYTES / 1024} KiB`);
    expect(named('MAX_INSIGHT_DETAIL')).toContain(` ${limits.MAX_INSIGHT_DETAIL.toLocaleString('en')} `);
    expect(named('MAX_SIGNALS_KEPT')).toContain(` ${limits.MAX_SIGNALS_KEPT.toLocaleString('en')} `);
    expect(named('MAX_LOG_SEARCH_LENGTH')).toContain(` ${limits.MAX_LOG_SEARCH_LENGTH.toLocaleString('en')} `);
    expect(named('MAX_REGEX_PROGRAM')).toContain(` ${limits.MAX_REGEX_PROGRAM} `);
    expect(named('MAX_REGEX_STEPS')).toContain(` ${limits.MAX_REGEX_STEPS.toLocaleString('en')} `);
    expect(named('COMMAND_LEASE_MS')).toContain(`${limits.COMMAND_LEASE_MS / 1000} s`);
    expect(named('COMMAND_EXPIRY_MS')).toContain(
      `${limits.COMMAND_EXPIRY_MS / 60_000} minutes (\`COMMAND_EXPIRY_MS\`)`,
    );
    expect(named('INTERRUPT_EXPIRY_MS')).toContain(`${limits.INTERRUPT_EXPIRY_MS / 1000} s (\`INTERRUPT_EXPIRY_MS\`)`);
    expect(named('MESSAGE_EXPIRY_MS')).toContain(`${limits.MESSAGE_EXPIRY_MS / 86_400_000} days`);
    expect(named('DEBUG_TTL_SECONDS')).toContain(` ${limits.DEBUG_TTL_SECONDS} `);
    expect(named('RUNNER_AWAY_MS')).toContain(`${limits.RUNNER_AWAY_MS / 1000} s`);
    expect(named('RUNNER_GRACE_MS')).toContain(`${limits.RUNNER_GRACE_MS / 1000} s`);
    expect(page).toContain(limits.MISSED_REPORTS === 2 ? 'at two missed' : 'missed reports');
    expect(named('HEARTBEAT_MS')).toContain(`${limits.HEARTBEAT_MS / 1000} s`);
  });

  test('lists the events that Interlude writes', () => {
    for (const name of [CUSTOM.lost, CUSTOM.quarantined, CUSTOM.notice, CUSTOM.sessionEnded, CUSTOM.messageDelivery])
      expect(page).toContain(name);
  });
});
