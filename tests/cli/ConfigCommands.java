import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/** Kafka's ConfigCommand as a server: one line of base64 arguments in, one line out: exit code, stdout, stderr. */
class ConfigCommands {
    static final class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] unused) throws Exception {
        Exit.setExitProcedure((code, message) -> { throw new Exited(code); });
        Exit.setHaltProcedure((code, message) -> { throw new Exited(code); });
        PrintStream answers = System.out;
        // Scala keeps the stream that it finds first, so both stay the same for good and are emptied in between.
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        var main = Class.forName("kafka.admin.ConfigCommand").getMethod("main", String[].class);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] arguments = line.split(" ");
            for (int i = 0; i < arguments.length; i++) {
                arguments[i] = new String(Base64.getDecoder().decode(arguments[i].substring(1)), StandardCharsets.UTF_8);
            }
            int code = 0;
            try {
                main.invoke(null, (Object) arguments);
            } catch (InvocationTargetException error) {
                if (!(error.getCause() instanceof Exited exited)) {
                    throw error;
                }
                code = exited.code;
            }
            answers.println(code + " =" + base64(out) + " =" + base64(err));
            answers.flush();
        }
    }

    /** What was written, and the stream is empty again. */
    private static String base64(ByteArrayOutputStream written) {
        String text = Base64.getEncoder().encodeToString(written.toByteArray());
        written.reset();
        return text;
    }
}
