import type { Frame, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Passed } from './embed-front';
import { type EmbedStage, embedIn } from './embed-stage';
import { EventWriter } from './event-writer';
import { userTurn } from './turn-events';
import { requestOpened } from './wire-runner';

/** Sessions, frames and tokens for tests of embeds. */

export interface EmbeddedSession {
  sessionId: string;
  agentId: string;
  agent: EventWriter;
}

let sessions = 0;

/** A new session of a new agent, whose reply is “Here I am”. */
export async function newSession({ server }: EmbedStage): Promise<EmbeddedSession> {
  sessions += 1;
  const [sessionId, agentId] = [`session-${sessions}`, `agent-${sessions}`];
  const agent = new EventWriter(server, agentId);
  await agent.write(sessionId, userTurn('r1', 'Hello', 'Here I am'));
  return { sessionId, agentId, agent };
}

export const permissionAsked = (id: string) =>
  requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title: 'Run it', input: { command: 'ls' } });

/** An event that embed.js reported to the console's page. */
export interface EmbedEvent {
  type: string;
  state?: string;
  message?: string;
  [more: string]: unknown;
}

export function embedEvents(page: Page): Promise<EmbedEvent[]> {
  return page.evaluate(() => (window as unknown as { events: EmbedEvent[] }).events);
}

export async function embedStates(page: Page): Promise<string[]> {
  return (await embedEvents(page)).flatMap(({ type, state }) => (type === 'state' && state !== undefined ? state : []));
}

/** Resolves once a frame shows that text in its transcript and is live. */
export async function showsTranscript(frame: Frame, text = 'Here I am'): Promise<void> {
  await frame.getByRole('log', { name: 'Transcript' }).getByText(text).waitFor();
  await frame.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
}

/** The API requests that passed since that many had. */
export function apiRequestsSince({ front }: EmbedStage, from: number): Passed[] {
  return front.passed.slice(from).filter(({ path }) => path.startsWith('/api/'));
}

/** Signs the browser in to the dashboard itself. */
export async function signInBeside(it: EmbedStage): Promise<Page> {
  const own = await it.context.newPage();
  await own.goto(`${it.origin}/sign-in?token=${it.server.token}`);
  // over plain http a browser does not send where a link was followed, so the link asks first
  await own.getByRole('button', { name: 'Sign in' }).click();
  // Chromium may never close a tab that is on its way to a page of another browsing context group
  await own.waitForURL(({ pathname }) => !pathname.endsWith('/sign-in'));
  return own;
}

export async function embedToken(it: EmbedStage, sessionId: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${it.front.port}/api/v1/embed-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}` },
    body: JSON.stringify({ sessionId, parentOrigin: it.originOf('crossSite') }),
  });
  return ((await answer.json()) as { token: string }).token;
}

/**
 * Shows a session in a frame, beside the dashboard that the same browser is signed in to, and expects every request of
 * the frame to use its token.
 *
 * @param more further options of the frame, as `&name=value`
 */
export async function expectLiveByTokenAlone(
  it: EmbedStage,
  host: Parameters<EmbedStage['open']>[0],
  more = '',
): Promise<void> {
  // The dashboard is open in the same browser.
  const own = await signInBeside(it);
  await own.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
  const { sessionId, agent } = await newSession(it);
  const from = it.front.passed.length;
  const page = await it.open(host, `session=${sessionId}${more}`);
  const frame = await embedIn(page, it.origin);
  await showsTranscript(frame);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said while it was watched'));
  await showsTranscript(frame, 'Said while it was watched');

  // Neither the browser's cookie nor the dashboard's shared worker serves the frame.
  const asked = apiRequestsSince(it, from).filter(
    ({ path, bearer }) => bearer?.startsWith('ile_') || path.includes(sessionId),
  );
  expect(asked.some(({ path }) => path.startsWith('/api/v1/stream'))).toBe(true);
  expect(asked.filter(({ hasCookie, method }) => hasCookie && method !== 'OPTIONS')).toEqual([]);
  expect(await embedStates(page)).toEqual(['connected']);
  const kept = await frame
    .evaluate(() => Object.keys(localStorage))
    .catch((error: Error) => (error.message.includes('sandbox') ? [] : [error.message]));
  // The dashboard beside it has written whose it is.
  expect(kept.filter((key) => key !== 'interlude:current')).toEqual([]);
  await Promise.all([page.close(), own.close()]);
}
