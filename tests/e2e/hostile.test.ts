import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { followToSession, type HostileVisit, renamed, unfoldAll, visitHostile } from '../support/hostile-visit';
import { live, transcriptOf } from '../support/transcript-page';
import { toolCall, userTurn } from '../support/turn-events';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

let site: HostileVisit;
beforeAll(async () => {
  site = await visitHostile();
});
beforeEach(() => {
  site.complaints.length = 0;
});
afterAll(() => site.close());

test('hostile texts run nothing, load nothing and stay readable, live and reloaded', async () => {
  const agent = new EventWriter(site.server, site.attacks[1] as string);
  await agent.write('hostile', site.everywhere());
  const page = await site.loadArmed('/sessions/hostile');
  await live(page);
  await unfoldAll(page);
  await site.nothingActed(page);
  await transcriptOf(page).getByText('<script>harm()</script>').first().waitFor();
  await agent.write('hostile', site.everywhere().map(renamed('again')));
  await transcriptOf(page).locator('[data-turn="again-r2"]').waitFor();
  await unfoldAll(page);
  await site.nothingActed(page);

  for (const path of ['/', '/agents', `/agents/${encodeURIComponent(site.attacks[1] as string)}`]) {
    await page.goto(`${site.server.url}${path}`);
    await live(page);
    await site.nothingActed(page);
  }
  await page.close();
});

test('a transcript shows no escapes, control characters or direction marks in commands and titles', async () => {
  const trick = 'rm \u202etxt.exe\u202c \x1b[31mred\x1b[0m \x1b]0;owned\x07\u0008\u009b2J';
  await new EventWriter(site.server, 'trickster').write('escapes', [
    ...userTurn('r1', 'Go', toolCall('c1', 'Bash', { command: trick }, trick)),
    { type: 'CUSTOM', name: 'interlude:notice', value: { text: trick } },
  ]);
  const page = await site.loadArmed('/sessions/escapes');
  await live(page);
  await unfoldAll(page);
  expect((await transcriptOf(page).allInnerTexts()).join('\n')).not.toMatch(UNSEEN);
  await transcriptOf(page).getByText('red').first().waitFor();
  await page.close();
});

test('a session whose id resembles a path and markup has its own live page', async () => {
  const page = await site.loadArmed('/');
  await live(page);
  await followToSession(site, page, '../../signed-out?a=b#<img src=x onerror=harm()>', 'of it');
  await page.close();
});

test('every page has a content policy with its own nonce, without inline or evaluated scripts', async () => {
  const nonces = new Set<string>();
  const paths = [
    '/',
    '/',
    '/sessions/hostile',
    '/agents',
    '/agents/trickster',
    '/signed-out',
    '/nowhere',
    '/sessions/nowhere',
  ];
  for (const path of paths) {
    const response = await site.context.request.get(`${site.server.url}${path}`);
    const policy = response.headers()['content-security-policy'] ?? '';
    const scripts = /script-src ([^;]*)/.exec(policy)?.[1] ?? '';
    expect(scripts).toMatch(/'nonce-[\w+/=]{16,}'/);
    expect(scripts).not.toMatch(/unsafe-inline|unsafe-eval|\*|https?:/);
    expect(policy).toContain("object-src 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    nonces.add(/'nonce-([^']+)'/.exec(scripts)?.[1] ?? '');
  }
  expect(nonces.size).toBe(paths.length);
});
