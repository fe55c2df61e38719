import { inProcessServer } from '../support/server-target';
import { describeLogsContract } from './logs-contract';

describeLogsContract('in this process', inProcessServer);
