import { Agent, request } from 'node:http';

/** How long a server took to say that it is alive while some work was done, asked again and again beside it. */
export interface HealthProbe {
  /** The longest answer, in milliseconds: nothing else was done for that long. */
  longestMs: number;
  answers: number;
}

const EVERY_MS = 5;

/** Asks `/healthz` over one connection of its own, so that what is measured is the server and not the asking. */
export async function probeHealth(url: string, work: () => Promise<void>): Promise<HealthProbe> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const probe: HealthProbe = { longestMs: 0, answers: 0 };
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const began = performance.now();
      await ask(`${url}/healthz`, agent);
      probe.longestMs = Math.max(probe.longestMs, performance.now() - began);
      probe.answers += 1;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await asking;
    agent.destroy();
  }
  return probe;
}

function ask(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    request(url, { agent }, (response) => {
      response.resume();
      response.on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
}
