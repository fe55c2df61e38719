import { twoLetters } from '../support/hostile-batches';
import { hostileTexts } from '../support/hostile-texts';
import { LogWriter } from '../support/log-writer';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { traceMainThread } from './page-timing';
import { note, report } from './report';

/** The longest task of a log page with lines that are expensive to match, mark and render, stored and live. */
const LINE = 60_000;
const some = (count: number, message: (at: number) => string) =>
  Array.from({ length: count }, (_, index) => ({ message: message(index) }));

interface Case {
  name: string;
  query: string;
  lines: { message: string }[];
}

const regex = (source: string) => `?regex=${encodeURIComponent(source)}`;
const CASES: Case[] = [
  { name: 'matches that each scan to the end', query: regex('a.*b|a'), lines: some(120, () => 'a'.repeat(16_000)) },
  {
    name: 'a state at every character',
    query: regex('[^c]*a[^c]{140}[cd]'),
    lines: some(200, (at) => twoLetters(LINE, at)),
  },
  { name: 'a counted class', query: regex('(?i)[^x]{0,140}y'), lines: some(200, (at) => twoLetters(LINE, at)) },
  {
    name: 'many words',
    query: `?q=${'ab ba aab bba abab '.repeat(8)}`,
    lines: some(400, (at) => twoLetters(LINE, at)),
  },
  { name: 'matches at every other character', query: '?q=a', lines: some(120, () => 'ab'.repeat(8_000)) },
  { name: 'controls at every other character', query: '', lines: some(120, () => 'a\u0001'.repeat(8_000)) },
  { name: 'colours at every character', query: '', lines: some(120, () => '\u001b[31ma\u001b[42;1mb'.repeat(4_000)) },
  { name: 'another font at every other character', query: '', lines: some(120, () => 'a漢'.repeat(8_000)) },
  { name: 'almost valid JSON', query: '', lines: some(120, () => `{ {${'['.repeat(LINE)}]`) },
  { name: 'hostile texts', query: '', lines: hostileTexts(LINE).map(({ text }) => ({ message: text })) },
];

const site: OwnVisit = await visitOwn();
try {
  await site.context.addInitScript(
    () => void localStorage.setItem('interlude:of:local:log-settings', JSON.stringify({ wraps: true, dims: true })),
  );
  let worst = { ms: 0, what: '' };
  for (const [number, { name, query, lines }] of CASES.entries()) {
    const agent = new LogWriter(site.server, `agent-${number}`);
    await agent.arrive();
    const write = async () => {
      for (let index = 0; index < lines.length; index += 40) await agent.write(lines.slice(index, index + 40));
    };
    const page = await site.context.newPage();
    const measure = async (what: string, work: () => Promise<unknown>) => {
      const { longestCpuMs } = await traceMainThread(page, async () => {
        await work();
        await page.waitForTimeout(3_000);
      });
      note(`hostile log: ${name}, ${what}`, longestCpuMs, 'ms');
      if (longestCpuMs > worst.ms) worst = { ms: longestCpuMs, what: `${name}, ${what}` };
    };
    await page.goto(`${site.server.url}/agents/${agent.agentId}/logs${query}`);
    await live(page);
    await measure('live', write);
    await measure('opened', () => page.goto(`${site.server.url}/agents/${agent.agentId}/logs${query}`));
    await measure('scrolled', async () => {
      for (let times = 0; times < 10; times++) {
        await page.mouse.move(400, 400);
        await page.mouse.wheel(0, -1_500);
        await page.waitForTimeout(100);
      }
    });
    await page.close();
  }
  report(`hostile log: longest page task (${worst.what})`, worst.ms, 'ms', { atMost: 100 });
} finally {
  await site.close();
}
