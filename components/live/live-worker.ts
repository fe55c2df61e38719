import { setPerson } from '@/components/ui/browser-storage';
import { PortHub } from './port-hub';
import type { Port } from './port-messages';

/**
 * The SharedWorker. HTTP/1.1 allows six connections per host, and this uses one for all tabs of the user in its name.
 */
declare const self: { name: string; navigator: Navigator; onconnect: ((event: MessageEvent) => void) | null };

setPerson(self.name);
const hub = new PortHub(self.navigator.locks);
self.onconnect = (event) => {
  const [port] = event.ports;
  if (port) hub.attach(port as Port);
};
