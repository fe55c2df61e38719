import { inProcessServer } from '../support/server-target';
import { describeRequestsContract } from './requests-contract';

describeRequestsContract('in this process', inProcessServer);
