import { setPerson } from '@/components/ui/browser-storage';
import { PortHub } from './port-hub';
import type { Port } from './port-messages';

/**
 * The SharedWorker: HTTP/1.1 grants a browser six connections per host, and this one takes a single one for all tabs of
 * the person it is named after.
 */
declare const self: { name: string; navigator: Navigator; onconnect: ((event: MessageEvent) => void) | null };

setPerson(self.name);
const hub = new PortHub(self.navigator.locks);
self.onconnect = (event) => {
  const [port] = event.ports;
  if (port) hub.attach(port as Port);
};
