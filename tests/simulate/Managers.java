// Kafka's own quota managers under a clock that the test sets: one load a line, one answer a record.
//   produce|request|strict|permissive SAMPLES SAMPLE_SECONDS BOUND  then TIME:VALUE …
// A record prints the throttle time in ms; a rejected one prints it with a leading x.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.Optional;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

public class Managers {
    static long now = 0;

    static final Time TIME = (Time) Proxy.newProxyInstance(Managers.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, arguments) -> switch (method.getName()) {
            case "milliseconds", "hiResClockMs" -> now;
            case "nanoseconds" -> now * 1_000_000;
            default -> throw new UnsupportedOperationException(method.getName());
        });

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
        System.exit(0);
    }

    static String answer(String[] words) throws Exception {
        now = Long.parseLong(words[4].split(":")[0]);
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
        try (Metrics metrics = new Metrics(new MetricConfig(), java.util.List.of(), TIME)) {
            ClientQuotaManager manager = switch (words[0]) {
                case "produce" -> new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, TIME, "t");
                case "request" -> new ClientRequestQuotaManager(config, metrics, TIME, "t", Optional.empty());
                default -> new ControllerMutationQuotaManager(config, metrics, TIME, "t", Optional.empty());
            };
            manager.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.empty(),
                Optional.of(Quota.upperBound(Double.parseDouble(words[3]))));
            Session session = new Session(new KafkaPrincipal("User", "u"), InetAddress.getLoopbackAddress());
            StringBuilder out = new StringBuilder();
            for (int i = 4; i < words.length; i++) {
                String[] parts = words[i].split(":");
                now = Long.parseLong(parts[0]);
                out.append(record(words[0], manager, session, Double.parseDouble(parts[1]))).append(' ');
            }
            manager.shutdown();
            return out.toString().trim();
        }
    }

    static String record(String kind, ClientQuotaManager manager, Session session, double value) {
        if (!(manager instanceof ControllerMutationQuotaManager)) {
            return String.valueOf(manager.recordAndGetThrottleTimeMs(session, "c", value, now));
        }
        ControllerMutationQuotaManager mutations = (ControllerMutationQuotaManager) manager;
        ControllerMutationQuota quota = kind.equals("strict")
            ? mutations.newStrictQuotaFor(session, "c") : mutations.newPermissiveQuotaFor(session, "c");
        try {
            quota.record(value);
            return String.valueOf(quota.throttleTime());
        } catch (ThrottlingQuotaExceededException e) {
            return "x" + e.throttleTimeMs();
        }
    }
}
