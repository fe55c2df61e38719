import { EmbedShell } from '../embed-shell';

export default function EmbedFleetPage() {
  return <EmbedShell of={{ fleet: true }} />;
}
