import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ENGINES, ENTER, type Tab } from '../support/engines';
import { EventWriter, writeManyTurns } from '../support/event-writer';
import { newSignInLink } from '../support/server-data';
import { userTurn } from '../support/turn-events';
import { sharedDashboard } from '../support/visit';
import { requestOpened, requestResolved, turnOf, WireRunner } from '../support/wire-runner';

const server = sharedDashboard();

describe.each(ENGINES)('$engine', ({ engine, needs, start, usesLocalName }) => {
  const missing = needs.flatMap((one) => ('missing' in one ? [one.missing] : []));
  if (missing.length > 0) {
    test.skip(`not run: ${missing.join('; ')}`, () => {});
    return;
  }
  const name = `engines-${engine.toLowerCase()}`;
  let tab: Tab;
  /** The origin that the sign-in link led to. */
  let origin: string;

  beforeAll(async () => {
    tab = await start(...needs.flatMap((one) => ('program' in one ? [one.program] : [])));
  });
  afterAll(async () => {
    await tab?.close();
    expect(tab?.complaints).toEqual([]);
  });

  const shows = (role: Role, named: string, text: string) =>
    expect.poll(() => tab.run(find, SELECTORS[role], named, text), { message: `${named}: ${text}` }).not.toBeNull();

  /** Clicks a control once it is enabled and has stayed in its place. */
  async function press(role: Role, named: string) {
    let before: Place | null = null;
    const at = await vi.waitFor(
      async () => {
        const [last, now] = [before, await tab.run(find, SELECTORS[role], named, '')];
        before = now;
        if (now?.isEnabled && now.x === last?.x && now.y === last.y) return now;
        throw new Error(`“${named}” accepts no press`);
      },
      { interval: LOOKED_MS },
    );
    await tab.click(at);
  }

  async function open(sessionId: string) {
    await tab.goTo(`${origin}/sessions/${sessionId}`);
    await shows('status', 'Connection', 'Live');
  }

  test('signs in by link and goes live', async () => {
    await tab.goTo(await newSignInLink(server));
    await shows('status', 'Connection', 'Live');
    origin = await tab.run(() => location.origin);
    expect(await tab.run(() => document.cookie)).toBe('');
    expect(/^http:\/\/interlude-\w{8}\.localhost:\d+$/.test(origin)).toBe(usesLocalName);
  });

  test('sends a typed message, and shows its delivery and the reply', async () => {
    const agent = new EventWriter(server, name);
    await agent.write(name, userTurn('first', 'Begin', 'Begun'));
    const runner = await WireRunner.connect(server, name);
    await open(name);
    await press('textbox', `Message to “${name}”`);
    await tab.type(`Over to you${ENTER}`);
    const command = await runner.next('message');
    expect(command.body.text).toBe('Over to you');
    await shows('log', 'Transcript', 'Queued');
    await runner.acknowledge(command, 'delivered');
    await shows('log', 'Transcript', 'Delivered');
    await agent.write(name, userTurn('second', 'Go on', 'On my way'));
    await shows('log', 'Transcript', 'On my way');
    runner.leave();
  });

  test('allows a permission, and shows the outcome', async () => {
    const sessionId = `${name}-asks`;
    const agent = new EventWriter(server, sessionId);
    await agent.write(sessionId, [...userTurn('first', 'Begin', 'Begun'), turnOf('RUN_STARTED', 'second', [])]);
    const runner = await WireRunner.connect(server, sessionId);
    await open(sessionId);
    const asked = {
      request_id: 'q',
      kind: 'permission',
      tool_name: 'Bash',
      title: 'List it',
      input: { command: 'ls' },
    };
    await agent.write(sessionId, [requestOpened(asked)]);
    await press('button', 'Allow');
    const command = await runner.next('permission.decision');
    expect(command.body).toMatchObject({ requestId: 'q', behavior: 'allow' });
    await agent.write(sessionId, [requestResolved('q', 'allowed')]);
    await runner.acknowledge(command, 'done');
    await shows('region', 'Permission: “List it”', 'Allowed by operator');
    runner.leave();
  });

  test('loads older turns while scrolling up, and returns to the latest', async () => {
    const sessionId = `${name}-long`;
    await writeManyTurns(server, sessionId, 120);
    await open(sessionId);
    await shows('log', 'Transcript', 'Answer 119.');
    const isShown = async (text: string) => (await tab.run(find, SELECTORS.log, 'Transcript', text)) !== null;
    await expect
      .poll(async () => {
        const log = await tab.run(find, SELECTORS.log, 'Transcript', '');
        if (log) await tab.wheel(log, -2_000);
        return isShown('Beginning of the session');
      })
      .toBe(true);
    expect(await isShown('Answer 119.')).toBe(false);
    await press('button', 'Jump to latest');
    await shows('log', 'Transcript', 'Answer 119.');
    await expect.poll(() => tab.run(pixelsToEnd, SELECTORS.log)).toBeLessThanOrEqual(1);
  });
});

/** The page checks for moved controls ten times a second. */
const LOOKED_MS = 150;

const SELECTORS = {
  button: 'button',
  log: '[role=log]',
  region: 'section',
  status: '[role=status]',
  textbox: 'textarea',
};

type Role = keyof typeof SELECTORS;

interface Place {
  x: number;
  y: number;
  isEnabled: boolean;
}

/** Runs in the page. */
function pixelsToEnd(selector: string): number {
  const box = document.querySelector(selector);
  return box === null ? Number.NaN : box.scrollHeight - box.scrollTop - box.clientHeight;
}

/** Runs in the page. @returns the centre of the visible element with this name that contains the text */
function find(selector: string, name: string, text: string): Place | null {
  const named = [...document.querySelectorAll<HTMLElement>(selector)].filter(
    (one) => (one.ariaLabel ?? one.textContent ?? '').includes(name) && one.checkVisibility(),
  );
  // biome-ignore lint/performance/useDomNodeTextContent: only visible text counts
  const element = named.find((one) => one.innerText.includes(text));
  if (element === undefined) return null;
  element.scrollIntoView({ block: 'nearest' });
  const { left, top, width, height } = element.getBoundingClientRect();
  const isEnabled = !element.matches(':disabled, [aria-disabled=true]');
  return { x: Math.round(left + width / 2), y: Math.round(top + height / 2), isEnabled };
}
