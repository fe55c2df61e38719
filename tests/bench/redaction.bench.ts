import { Redactor } from '@interlude/runner/logger/redactor';
import { note, report } from './report';

/** Redaction cost per line: ordinary lines of 200 characters, lines with a secret, and the longest lines. */
const LINES = 20_000;
const PLAIN = [
  'POST /api/v1/events 200 in 12 ms, 41 records acknowledged at position 123456, 3 topics, 2 subscribers behind',
  'session 0f8fad5b-d9cb-469f-a165-70867728950e is followed in /home/mara/.claude/projects/app/0f8fad5b.jsonl',
  'usage: input_tokens=1234, cache_read_input_tokens=99120, the key of the lookup is agents/9a88f93e1d0c4d1b8a7e',
  '{"level":"info","component":"mirror","msg":"turn r2 finished","tookMs":8123,"tasks":["bpirhlfg1"],"exitCode":0}',
].map((line) =>
  `${line} and what else there is to be said about it, at some length, over and over again`
    .padEnd(200, '. ')
    .slice(0, 200),
);
const SECRET = PLAIN.map(
  (line, index) =>
    [
      `${'gh'}p_${'aB3'.repeat(12)} ${line}`,
      `Authorization: Bearer ${'x7Y'.repeat(14)} ${line}`,
      `DB_PASSWORD=${'q9-'.repeat(6)} ${line}`,
      `postgres://app:${'h4x'.repeat(5)}@db/app ${line}`,
    ][index]?.slice(0, 200) as string,
);

const redactor = new Redactor();
redactor.addSecret('the-token-of-this-dashboard');
measure(PLAIN, 5_000);
measure(SECRET, 5_000);
const plain = measure(PLAIN, LINES);
const secret = measure(SECRET, LINES);
report('redaction: line of 200 characters, p99', plain.p99 * 1_000, 'µs', { atMost: 100 });
note('redaction: line of 200 characters, median', plain.median * 1_000, 'µs');
report('redaction: line with a secret, p99', secret.p99 * 1_000, 'µs', { atMost: 100 });
note('redaction: line with a secret, median', secret.median * 1_000, 'µs');
const long = measure(
  [
    PLAIN.join(' ')
      .repeat(100)
      .slice(0, 64 * 1024),
  ],
  200,
);
// few samples: the maximum reflects the machine
report('redaction: line of 64 KiB, median', long.median, 'ms', { atMost: 25 });
note('redaction: line of 64 KiB, p99', long.p99, 'ms');

function measure(lines: readonly string[], count: number) {
  const took: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedAt = performance.now();
    redactor.redact('bench', lines[index % lines.length] as string);
    took.push(performance.now() - startedAt);
  }
  took.sort((a, b) => a - b);
  return { median: took[Math.floor(count / 2)] as number, p99: took[Math.floor(count * 0.99)] as number };
}
