/** For a request that is still on its way over a connection that was accepted before. */
const ARRIVING_MS = 100;
/** What an answer may take; what takes longer is cut off. */
const LAST_ANSWERS_MS = 1_000;

/**
 * Follows what HTTP servers have under way, so that they can be closed without cutting anybody off.
 *
 * Ordering: nobody new is let in; whoever is inside gets an answer, with which the connection ends; then all are shut.
 * Failure: an answer that takes too long breaks off, so that nobody takes half of it for the whole, and no answer leaves
 * once this has resolved: what is done afterwards can't be seen half done.
 *
 * @param {readonly import('node:http').Server[]} servers listening
 * @returns {() => Promise<void>} stops listening before it returns; resolves when nothing is under way
 */
export function closableDoor(servers) {
  /** @type {Set<import('node:http').ServerResponse>} */
  const underWay = new Set();
  let isClosing = false;
  let settled = () => {};
  for (const server of servers) {
    // before who answers: an answer that has begun can't say any more that it is the last
    server.prependListener('request', (_request, response) => {
      if (isClosing) response.shouldKeepAlive = false;
      underWay.add(response);
      response.once('close', () => {
        underWay.delete(response);
        if (underWay.size === 0) settled();
      });
    });
  }
  return async () => {
    isClosing = true;
    for (const response of underWay) if (!response.headersSent) response.shouldKeepAlive = false;
    const left = Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    const answered = pause(ARRIVING_MS).then(
      () =>
        new Promise((resolve) => {
          settled = () => resolve(undefined);
          if (underWay.size === 0) settled();
        }),
    );
    await Promise.race([left, answered, pause(LAST_ANSWERS_MS)]);
    for (const server of servers) server.closeAllConnections();
  };
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
