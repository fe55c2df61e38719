import { personId } from '@/components/ui/browser-storage';
import { page } from './ask-server';
import type { Port } from './port-messages';

const LOAD_AGAIN_MS = 3_000;

/**
 * The way to the live connection: the SharedWorker of this browser, or a hub of this page's own where there is none
 * (some mobile browsers) or this page must not share it (an embed). Both speak the same messages.
 *
 * Failure: a worker script that can't be loaded (an old page after an upgrade) is replaced by a hub of the page's own.
 */
export function openPort(replace: (port: Port) => void): Port {
  if (page.way || typeof SharedWorker === 'undefined') return portOfThisPage();
  try {
    const worker = new SharedWorker(new URL('./live-worker.ts', import.meta.url), {
      type: 'module',
      // One worker per person, so no stream reaches another person.
      name: personId() ?? '',
    });
    worker.onerror = () => replace(portOfThisPage());
    return worker.port;
  } catch {
    return portOfThisPage();
  }
}

function portOfThisPage(): Port {
  const { port1, port2 } = new MessageChannel();
  attachHub(port2);
  return port1;
}

/** Most browsers never need its code. What is posted before it has come waits in the channel. */
function attachHub(port: Port): void {
  import('./port-hub').then(
    ({ PortHub }) => new PortHub(undefined).attach(port),
    () => setTimeout(attachHub, LOAD_AGAIN_MS, port),
  );
}
