import { EventWriter } from '../support/event-writer';
import { hostileSessions } from '../support/hostile-sessions';
import { probeHealth } from '../support/latency-probes';
import { type OwnVisit, visitOwn } from '../support/visit';
import { traceMainThread } from './page-timing';
import { note, report } from './report';

/** Server and browser cost of session pages designed to block rendering. */
const site: OwnVisit = await visitOwn();
try {
  const agent = new EventWriter(site.server, 'hostile');
  const ids: string[] = [];
  for (const { id, events } of hostileSessions()) {
    await agent.write(id, events);
    ids.push(id);
  }
  let [onServer, inPage, bytes] = [{ ms: 0, id: '' }, { ms: 0, id: '' }, 0];
  const headers = { cookie: (await site.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ') };
  await (await fetch(`${site.server.url}/sessions/${ids[0]}`, { headers })).text();
  for (const id of ids) {
    const { longestMs } = await probeHealth(site.server.url, async () => {
      const response = await fetch(`${site.server.url}/sessions/${id}`, { headers });
      bytes = Math.max(bytes, (await response.arrayBuffer()).byteLength);
    });
    note(`hostile pages: server, ${id}`, longestMs, 'ms');
    if (longestMs > onServer.ms) onServer = { ms: longestMs, id };
    const page = await site.context.newPage();
    const { longestCpuMs } = await traceMainThread(page, async () => {
      await page.goto(`${site.server.url}/sessions/${id}`);
      await page.waitForTimeout(3_000);
    });
    await page.close();
    note(`hostile pages: browser, ${id}`, longestCpuMs, 'ms');
    if (longestCpuMs > inPage.ms) inPage = { ms: longestCpuMs, id };
  }
  note('hostile pages: largest page', bytes / 1024, 'KiB');
  report(`hostile pages: longest server block (${onServer.id})`, onServer.ms, 'ms', { atMost: 100 });
  report(`hostile pages: longest page task (${inPage.id})`, inPage.ms, 'ms', { atMost: 100 });
} finally {
  await site.close();
}
