// Kafka's own statistics, driven from stdin: one load a line, one line of numbers back.
//   rate|bucket SAMPLES SAMPLE_MS BOUND  then any of  r:TIME:VALUE  m:TIME
// A measure prints the value and, of a rate, the window's ms and the throttle time of QuotaUtils.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

public class Sensors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    static String answer(String[] words) {
        double bound = Double.parseDouble(words[3]);
        MetricConfig config = new MetricConfig()
            .samples(Integer.parseInt(words[1]))
            .timeWindow(Long.parseLong(words[2]), TimeUnit.MILLISECONDS)
            .quota(Quota.upperBound(bound));
        MeasurableStat stat = words[0].equals("rate") ? new Rate() : new TokenBucket();
        StringBuilder out = new StringBuilder();
        for (int i = 4; i < words.length; i++) {
            String[] parts = words[i].split(":");
            long time = Long.parseLong(parts[1]);
            if (parts[0].equals("r")) {
                stat.record(config, Double.parseDouble(parts[2]), time);
            } else {
                out.append(stat.measure(config, time));
                if (stat instanceof Rate) {
                    out.append(':').append(((Rate) stat).windowSize(config, time));
                }
                out.append(' ');
            }
        }
        return out.toString().trim();
    }
}
